"""Events that the profiler sees anyway: operators, tensor memory, regions, steps, and what GPU providers tell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.schema import EventKind
from leadline.tools.backends import Wants
from leadline.tools.backends.tap import ACTIVITY, API, MEMORY, OPERATOR, REGION, Tap
from leadline.tools.batch import Batch, batch_of
from leadline.tools.tool import Context

EVENTS = frozenset({"operator", "memory", "region", "step", "api", "copy", "set", "synchronize", "device_memory"})
TRAITS = ("host events", "graphs", "library kernels", "exact")
DOC = "operators, tensor memory, regions, steps; with a GPU its calls and finished work"
NOTHING = "nothing of the kind happened while the tools ran"

_DOMAIN = {
    "operator": OPERATOR,
    "memory": MEMORY,
    "region": REGION,
    "step": REGION,
    "api": API,
    "synchronize": API,
    "device_memory": API,
    "copy": ACTIVITY,
    "set": ACTIVITY,
}
_STEP, _COPY, _SET = 2, EventKind.COPY, EventKind.SET
_SYNCHRONISE, _ALLOCATE, _FREE = 3, 4, 5


class MonitorBackend(Tap):
    """Drains the native rings."""

    name = "monitor"
    events = EVENTS
    traits = TRAITS

    def __init__(self, native: Any, context: Context, wants: Wants) -> None:
        self._wanted = wants.events & EVENTS
        super().__init__(native, context, sum({1 << _DOMAIN[event] for event in self._wanted}))

    def drain(self) -> Iterable[Batch]:
        for rows in self._rows():
            yield from self._batches(rows)

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
                columns["kernel"] = self._kernels(rows)
        return batch_of(event, columns)


def probe() -> str:
    """Why it would not work here, or empty."""
    return ""


def create(native: Any, context: Context, wants: Wants) -> MonitorBackend:
    """See `leadline.tools.backends`."""
    return MonitorBackend(native, context, wants)
