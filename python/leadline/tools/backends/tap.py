"""What backends share that read the monitor's own events: the native rings, their rows, the names of device work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.tools.errors import ToolError
from leadline.tools.tool import Context

OPERATOR, MEMORY, REGION, API, ACTIVITY = range(5)
"""Domains of events, the numbers of their bits in `leadline_domain`."""
_ROW = np.dtype(
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


class Tap:
    """The native half of such a backend. `what`: its events in words."""

    what = "events"

    def __init__(self, native: Any, context: Context, domains: int) -> None:
        self._context = context
        self._tap = native.EventTap(domains, 1 << 17)
        self._names: dict[int, int] = {}

    def start(self) -> None:
        """Begin; raises ToolError."""
        if not self._tap.start():
            raise ToolError(
                f"The monitor has no room for one more listener, so tools get no {self.what}; stop other profilers."
            )

    def stop(self) -> None:
        """No event comes after it; what has come can still be read."""
        self._tap.stop()

    def wait(self, seconds: float) -> None:
        """Until a ring is half full, or the time is over."""
        self._tap.wait(int(seconds * 1e9))

    def lost(self) -> dict[str, int]:
        """What found its ring full."""
        lost = self._tap.lost()
        return {f"{self.what} that found their ring full": lost} if lost else {}

    def _rows(self) -> Iterator[NDArray[Any]]:
        """What has come since the last call."""
        while True:
            rows = np.frombuffer(self._tap.drain(_ROOM), _ROW)
            if len(rows):
                yield rows
            if len(rows) < _ROOM:
                return

    def _kernels(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """For every row the number that the name of its device work has among the tools' names."""
        for number in set(rows["name"].tolist()) - self._names.keys():
            self._names[number] = self._context.names.number(self._tap.name(number))
        return np.array([self._names[number] for number in rows["name"].tolist()], np.int64)
