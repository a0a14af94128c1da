"""Events of the kernel as columns: the table `kernel_events` of the schema, with text instead of its row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.schema import KernelEventKind

Columns = dict[str, NDArray[Any]]
NUMBERS = ("time_ns", "cpu", "kind", "tid", "target", "value")


def columns(kind: KernelEventKind, time_ns: NDArray[Any], cpu: NDArray[Any], **given: Any) -> Columns:
    """Events of one kind; what is not given is -1 (threads), 0 (value) or empty (name)."""
    count = len(time_ns)
    found: Columns = {
        "time_ns": np.asarray(time_ns, dtype=np.int64),
        "cpu": np.asarray(cpu, dtype=np.int16),
        "kind": np.full(count, int(kind), dtype=np.uint8),
    }
    defaults: Mapping[str, tuple[Any, str]] = {
        "tid": (-1, "i8"),
        "target": (-1, "i8"),
        "value": (0, "i8"),
        "name": ("", "O"),
    }
    for name, (default, dtype) in defaults.items():
        value = given.get(name, default)
        filled = np.empty(count, dtype=dtype)
        filled[:] = value
        found[name] = filled
    return found


def in_order(parts: Sequence[Columns]) -> Columns:
    """All events of all CPUs by time; events of one CPU at one moment keep their order."""
    if not parts:
        return columns(KernelEventKind.SWITCH, np.empty(0, np.int64), np.empty(0, np.int16))
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(joined["time_ns"], kind="stable")
    return {name: values[order] for name, values in joined.items()}


def texts(raw: NDArray[np.uint8]) -> NDArray[Any]:
    """Rows of bytes that end with a zero as text; each distinct row is decoded once."""
    if not len(raw):
        return np.empty(0, dtype=object)
    width = raw.shape[1]
    fixed = np.ascontiguousarray(raw).view(f"S{width}").ravel()
    distinct, number = np.unique(fixed, return_inverse=True)
    known = np.array([one.split(b"\0", 1)[0].decode("utf-8", "replace") for one in distinct.tolist()], dtype=object)
    named: NDArray[Any] = known[number.ravel()]
    return named
