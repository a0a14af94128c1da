"""Events that the profiler sees anyway: operators, tensor memory, regions, steps, and what GPU providers tell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.tools.backends import Wants
from leadline.tools.batch import Batch, batch_of
from leadline.tools.errors import ToolError
from leadline.tools.tool import Context

EVENTS = frozenset({"operator", "memory", "region", "step", "api", "copy", "set", "synchronize", "device_memory"})
TRAITS = ("host events", "graphs", "library kernels", "exact")
DOC = "operators, tensor memory, regions, steps; with a GPU its calls and finished work"
NOTHING = "nothing of the kind happened while they looked"

_OPERATOR, _MEMORY, _REGION, _API, ACTIVITY = range(5)
_DOMAIN = {
    "operator": _OPERATOR,
    "memory": _MEMORY,
    "region": _REGION,
    "step": _REGION,
    "api": _API,
    "synchronize": _API,
    "device_memory": _API,
    "copy": ACTIVITY,
    "set": ACTIVITY,
}
_STEP, _COPY, _SET = 2, 6, 7
_SYNCHRONISE, _ALLOCATE, _FREE = 3, 4, 5
ROW = np.dtype(
    [
        ("time", "<i8"),
        ("place", "<i8"),
        ("duration", "<i8"),
        ("a", "<i8"),
        ("b", "<i8"),
        ("c", "<i8"),
        ("device", "<i4"),
        ("thread", "<u4"),
        ("domain", "u1"),
        ("kind", "u1"),
        ("device_type", "u1"),
        ("phase", "u1"),
        ("name", "<u4"),
    ]
)
"""EventRow of native/tools/event_tap.h."""
_ROOM = 1 << 18


class MonitorBackend:
    """Drains the native rings."""

    name = "monitor"
    events = EVENTS
    traits = TRAITS

    def __init__(self, native: Any, context: Context, wants: Wants) -> None:
        self._context = context
        self._wanted = wants.events & EVENTS
        domains = sum({1 << _DOMAIN[event] for event in self._wanted})
        self._tap = native.EventTap(domains, 1 << 17)
        self._names: dict[int, int] = {}

    def start(self) -> None:
        if not self._tap.start():
            raise ToolError(
                "The monitor has no room for one more listener, so tools get no events; stop other profilers."
            )

    def stop(self) -> None:
        self._tap.stop()

    def wait(self, seconds: float) -> None:
        self._tap.wait(int(seconds * 1e9))

    def lost(self) -> dict[str, int]:
        lost = self._tap.lost()
        return {"events that found their ring full": lost} if lost else {}

    def drain(self) -> Iterable[Batch]:
        rows = np.frombuffer(self._tap.drain(_ROOM), ROW)
        while len(rows):
            yield from self._batches(rows)
            rows = np.frombuffer(self._tap.drain(_ROOM), ROW) if len(rows) == _ROOM else rows[:0]

    def _batches(self, rows: NDArray[Any]) -> Iterable[Batch]:
        domain, kind = rows["domain"], rows["kind"]
        for event in sorted(self._wanted):
            chosen = domain == _DOMAIN[event]
            match event:
                case "region":
                    chosen &= kind != _STEP
                case "step":
                    chosen &= kind == _STEP
                case "synchronize":
                    chosen &= kind == _SYNCHRONISE
                case "device_memory":
                    chosen &= (kind == _ALLOCATE) | (kind == _FREE)
                case "copy":
                    chosen &= kind == _COPY
                case "set":
                    chosen &= kind == _SET
            if chosen.any():
                yield self._batch(event, rows[chosen])

    def _batch(self, event: str, rows: NDArray[Any]) -> Batch:
        columns: dict[str, Any] = {"time": rows["time"], "place": rows["place"], "thread": rows["thread"]}
        match event:
            case "operator" | "region":
                columns["duration"] = rows["duration"]
            case "memory":
                columns |= {"address": rows["a"], "bytes": rows["b"], "total": rows["c"]}
                columns |= {"device": rows["device"], "device_type": rows["device_type"]}
            case "step":
                columns = {"time": rows["time"], "step": rows["a"]}
            case "device_memory":
                sign = np.where(rows["kind"] == _FREE, -1, 1)
                columns |= {"bytes": rows["b"] * sign, "device": rows["device"]}
            case _:
                columns |= {"duration": rows["duration"], "bytes": rows["b"], "stream": rows["c"]}
                columns |= {"device": rows["device"], "correlation": rows["a"], "kind": rows["kind"]}
                columns["kernel"] = np.array([self._name(number) for number in rows["name"].tolist()], np.int64)
        return batch_of(event, columns)

    def _name(self, number: int) -> int:
        known = self._names.get(number)
        if known is None:
            known = self._names[number] = self._context.names.number(self._tap.name(number))
        return known


def probe() -> str:
    """Why it would not work here, or empty."""
    return ""


def create(native: Any, context: Context, wants: Wants) -> MonitorBackend:
    """See `leadline.tools.backends`."""
    return MonitorBackend(native, context, wants)
