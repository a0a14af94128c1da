"""Events of an earlier run, from the file that `--tool record` wrote: the same analysis again, or another one."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import numpy as np

from leadline.tools.backends import Wants
from leadline.tools.backends.recording import Recording, launches_of
from leadline.tools.batch import Batch, batch_of
from leadline.tools.errors import ToolError
from leadline.tools.events import EVENTS as ALL
from leadline.tools.ranges import Selector
from leadline.tools.tool import Context

EVENTS = frozenset(ALL)
TRAITS = ("events of a file", "no program runs")
DOC = "events that `--tool record` kept of an earlier run"
NOTHING = "the recording has none of them"

_AT_ONCE = 1 << 16


class ReplayBackend:
    """Hands over the whole file, in batches."""

    name = "replay"
    events = EVENTS
    traits = TRAITS
    on = False

    def __init__(self, native: Any, context: Context, wants: Wants) -> None:
        self._context = context
        self._wants = wants
        self._recording = self._read(wants.source)
        missing = sorted(wants.events - self._recording.events)
        if missing:
            have = ", ".join(sorted(self._recording.events))
            other = "; `value` is kept with --tool record_values" if "value" in missing else ""
            raise ToolError(f"{wants.source} has no events {', '.join(missing)}; it has {have}{other}.")
        self._selector = Selector(wants.ranges, context.places)
        self._asked: dict[int, bool] = {}
        self._waiting: list[Batch] = []
        self._wake = threading.Event()

    def _read(self, file: str) -> Recording:
        return Recording.of_file(file)

    def start(self) -> None:
        context, recording = self._context, self._recording
        name_of, thing_of = recording.fill(context.names, context.objects, context.places)
        translate = {"name": _table(name_of), "object": _table(thing_of)}
        for event in sorted({"launch", *self._wants.events}, key=lambda one: one != "launch"):
            columns = dict(recording.columns.get(event, {}))
            for column in ALL[event].columns:
                table = translate.get(column.ref)
                if table is not None and column.name in columns:
                    values = columns[column.name]
                    known = (values >= 0) & (values < len(table))
                    columns[column.name] = np.where(known, table[np.where(known, values, 0)], -1)
            if event == "launch":
                launches_of(columns, context.launches)
            if event in self._wants.events and columns:
                batch = self._chosen(batch_of(event, columns))
                starts = range(0, len(batch), _AT_ONCE)
                self._waiting += [batch.where(np.arange(at, min(at + _AT_ONCE, len(batch)))) for at in starts]
        self._wake.set()

    def _chosen(self, batch: Batch) -> Batch:
        """The rows whose launch the ranges choose."""
        if self._wants.ranges.everything or "launch" not in batch:
            return batch
        launches = self._context.launches
        asked = self._asked
        chosen = []
        for launch in np.asarray(batch["launch"]).tolist():
            if launch not in asked:
                kernel = self._context.names[launches.kernel[launch]]
                asked[launch] = self._selector.chooses(launch, kernel, int(launches.place[launch]))
            chosen.append(asked[launch])
        return batch.where(np.array(chosen, np.bool_))

    def drain(self) -> Iterable[Batch]:
        waiting, self._waiting = self._waiting, []
        return waiting

    def wait(self, seconds: float) -> None:
        self._wake.wait(seconds)
        self._wake.clear()

    def stop(self) -> None:
        """Everything has been handed over."""

    @property
    def skipped(self) -> int:
        """Launches that the ranges left out."""
        return self._selector.skipped

    def lost(self) -> dict[str, int]:
        return {}


def _table(numbers: dict[int, int]) -> Any:
    return np.array([numbers[one] for one in range(len(numbers))] or [-1], np.int64)


def probe() -> str:
    """Why it would not work here, or empty."""
    return ""


def create(native: Any, context: Context, wants: Wants) -> ReplayBackend:
    """See `leadline.tools.backends`; raises ToolError for a file that is none."""
    return ReplayBackend(native, context, wants)
