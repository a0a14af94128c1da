"""Kernels that GPU providers have measured (CUPTI, rocprofiler-sdk, roctracer, an accelerator's file) as launches: each
with its time on the device, told once it has ended; nothing is patched."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.tools.backends import Wants
from leadline.tools.backends.monitor import ACTIVITY, ROW
from leadline.tools.batch import Batch, batch_of
from leadline.tools.errors import ToolError
from leadline.tools.ranges import Selector
from leadline.tools.tool import Context

EVENTS = frozenset({"launch"})
TRAITS = ("device", "graphs", "library kernels", "exact")
DOC = "kernels on GPUs with their time there, as the GPU's own library reports them"
NOTHING = "no kernel of a GPU was reported"

_KERNELS = (5, 12)
"""EventKind `kernel` and `collective`, which is a kernel that communicates."""
_ROOM = 1 << 18


class KernelsBackend:
    """Drains the native rings of finished device work. Launches are numbered in the order in which they are told, which
    is that of their ends on each stream."""

    name = "kernels"
    events = EVENTS
    traits = TRAITS

    def __init__(self, native: Any, context: Context, wants: Wants) -> None:
        self._context = context
        self._tap = native.EventTap(1 << ACTIVITY, 1 << 17)
        self._names: dict[int, tuple[str, int]] = {}
        self._selector = Selector(wants.ranges, context.places)
        self._everything = wants.ranges.everything
        self._launches = 0

    def start(self) -> None:
        if not self._tap.start():
            raise ToolError(
                "The monitor has no room for one more listener, so tools get no kernels; stop other profilers."
            )

    def stop(self) -> None:
        self._tap.stop()

    def wait(self, seconds: float) -> None:
        self._tap.wait(int(seconds * 1e9))

    def lost(self) -> dict[str, int]:
        lost = self._tap.lost()
        return {"kernels that found their ring full": lost} if lost else {}

    @property
    def skipped(self) -> int:
        """Launches that the ranges left out."""
        return self._selector.skipped

    def drain(self) -> Iterable[Batch]:
        while True:
            rows = np.frombuffer(self._tap.drain(_ROOM), ROW)
            kernels = rows[np.isin(rows["kind"], _KERNELS)]
            if len(kernels):
                kernels = kernels[np.argsort(kernels["time"], kind="stable")]
                yield from self._batch(kernels)
            if len(rows) < _ROOM:
                return

    def _batch(self, rows: NDArray[Any]) -> Iterable[Batch]:
        named = [self._name(number) for number in rows["name"].tolist()]
        launches = np.arange(self._launches, self._launches + len(rows))
        self._launches += len(rows)
        kernels = np.array([number for _, number in named], np.int64)
        if not self._everything:
            asked = zip(launches.tolist(), named, rows["place"].tolist(), strict=True)
            chosen = np.array([self._selector.chooses(number, name, at) for number, (name, _), at in asked], np.bool_)
            rows, launches, kernels = rows[chosen], launches[chosen], kernels[chosen]
        if not len(rows):
            return
        nothing = np.zeros(len(rows), np.int64)
        columns = {"launch": launches, "kernel": kernels, "time": rows["time"], "duration": rows["duration"]}
        columns |= {"flops": nothing, "inputs": nothing, "thread": nothing}
        columns |= {"device": rows["device"], "place": rows["place"]}
        yield batch_of("launch", columns)

    def _name(self, number: int) -> tuple[str, int]:
        """A kernel's name and its number among the tools' names."""
        known = self._names.get(number)
        if known is None:
            name = self._tap.name(number)
            known = self._names[number] = name, self._context.names.number(name)
        return known


def probe() -> str:
    """Why it would not work here, or empty: a program that uses no GPU has no kernels, which is said at its end."""
    return ""


def create(native: Any, context: Context, wants: Wants) -> KernelsBackend:
    """See `leadline.tools.backends`."""
    return KernelsBackend(native, context, wants)
