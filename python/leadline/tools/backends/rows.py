"""Rows of events that come one launch at a time, kept until they are drained, and what their backends share."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterable, Mapping, Sequence

from leadline.tools.backends import Wants
from leadline.tools.backends.declared_operators import Storages
from leadline.tools.batch import Batch, batch_of
from leadline.tools.ranges import Selector
from leadline.tools.registry import Launches
from leadline.tools.tool import Context

LAUNCH = ("launch", "kernel", "time", "duration", "thread", "device", "place", "flops", "inputs")
TOUCHED = ("launch", "object", "first", "end", "bytes", "reads", "writes", "time", "place")
ACCESS = ("launch", "object", "instruction", "offset", "bytes", "count", "distinct", "write", "place")
_ROOM = 1 << 18


class Rows:
    """Put on any thread, drained on one. What finds no room is counted in `lost`."""

    def __init__(self, launches: Launches) -> None:
        self._launches = launches
        self._lock = threading.Lock()
        self._rows: dict[tuple[str, tuple[str, ...]], list[tuple[int, ...]]] = {}
        self._held = 0
        self._lost: dict[str, int] = {}
        self.wake = threading.Event()

    def put(self, event: str, columns: Sequence[str], rows: Iterable[tuple[int, ...]]) -> None:
        """Rows of one event, each with a number for each column."""
        with self._lock:
            known = self._rows.setdefault((event, tuple(columns)), [])
            before = len(known)
            if self._held < _ROOM:
                known.extend(rows)
                self._held += len(known) - before
            else:
                lost = "rows that found no room"
                self._lost[lost] = self._lost.get(lost, 0) + sum(1 for _ in rows)
        if self._held >= _ROOM // 2:
            self.wake.set()

    def count_lost(self, what: str, count: int = 1) -> None:
        """Something that could not be seen."""
        with self._lock:
            self._lost[what] = self._lost.get(what, 0) + count

    def lost(self) -> dict[str, int]:
        """What could not be kept or seen, by the reason in words."""
        with self._lock:
            return dict(self._lost)

    def drain(self) -> Iterable[Batch]:
        """What has come since the last call; launches before what they did."""
        with self._lock:
            rows, self._rows, self._held = self._rows, {}, 0
        for (event, names), of_event in sorted(rows.items(), key=lambda one: one[0][0] != "launch"):
            if not of_event:
                continue
            batch = batch_of(event, dict(zip(names, zip(*of_event, strict=True), strict=True)))
            if event == "launch":
                columns: Mapping[str, object] = batch.columns()
                self._launches.add(*(columns[name] for name in ("launch", "kernel", "place", "time")))  # type: ignore[arg-type]
            yield batch


class RowsBackend:
    """The half of a backend that does not depend on who runs the kernels."""

    def __init__(self, context: Context, wants: Wants) -> None:
        self._context = context
        self._selector = Selector(wants.ranges, context.places)
        self._rows = Rows(context.launches)
        self._touched = (*TOUCHED, *(f"pages@{size}" for size in wants.pages))
        self.on = False

    def wait(self, seconds: float) -> None:
        self._rows.wake.wait(seconds)
        self._rows.wake.clear()

    def lost(self) -> dict[str, int]:
        return self._rows.lost()

    @property
    def skipped(self) -> int:
        """Launches that the ranges left out."""
        return self._selector.skipped

    def drain(self) -> Iterable[Batch]:
        return self._rows.drain()

    @functools.cached_property
    def _storages(self) -> Storages:
        """First asked for by a launch, when torch is there."""
        return Storages(self._context.objects)


class Variable:
    """A variable of the environment that has another value while a backend is on."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.before: str | None = None

    def set(self, value: str) -> None:
        """Remember what it was."""
        self.before = os.environ.get(self._name)
        os.environ[self._name] = value

    def put_back(self) -> None:
        """As it was, also where it was not there."""
        if self.before is None:
            os.environ.pop(self._name, None)
        else:
            os.environ[self._name] = self.before


def signed(number: int) -> int:
    """An unsigned 64-bit number, such as a place, as columns hold it."""
    return number if number < 2**63 else number - 2**64
