"""A run while it goes on, from the segments of its processes: what has been measured so far, and since the last look.

Segments are replaced by a rename, so a reader never sees half of one and needs no handshake; only those that have
changed are read again.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from leadline import _package
from leadline._dataclass import dataclass, replace
from leadline.profiles.errors import ProfileFileError
from leadline.profiles.interval import between
from leadline.profiles.merge import merge_tables
from leadline.profiles.meta import complete_meta, well_typed
from leadline.profiles.overhead import stated_in
from leadline.profiles.profile import Profile
from leadline.profiles.reader import open_segment
from leadline.profiles.tables import Tables


@dataclass(frozen=True)
class LiveReading:
    """`now`: measured since the look before (at the first look since the run began); `whole`: since it began.
    `seconds`: that `now` spans; `age_s`: how long ago the oldest of the processes that run wrote; `ended`: whether all
    processes have."""

    now: Profile
    whole: Profile
    seconds: float
    age_s: float
    ended: bool


class LiveRun:
    """Looks at the part directory of a run. Times between looks are those of the segments, not of the looks."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._stamps: dict[str, tuple[int, int]] = {}
        self._tables: dict[str, Tables] = {}
        self._last: LiveReading | None = None

    def read(self) -> LiveReading:
        """What there is now; the look before where nothing has been written since. Raises ProfileFileError where the
        run has ended and its file was made, or where nothing can be read."""
        try:
            part = _package.read_part(self.directory)
        except _package.PackageError as error:
            raise ProfileFileError(str(error)) from error
        pieces: list[Tables] = []
        seconds = 0.0
        for process in part.processes:
            if process.segment is None:
                continue
            try:
                status = process.segment.stat()
                stamp = status.st_ino, status.st_mtime_ns
                if stamp == self._stamps.get(process.stem):
                    continue
                tables = open_segment(process.segment)
            except (OSError, ProfileFileError):
                continue  # replaced or removed at this moment
            before = self._tables.get(process.stem)
            piece = between(tables, before).tables
            pieces.append(piece)
            seconds = max(seconds, _span_s(piece))
            self._stamps[process.stem], self._tables[process.stem] = stamp, tables
        if not self._tables:
            raise ProfileFileError(f"No process has written into {self.directory} yet.")
        if not pieces and self._last is not None:
            return replace(self._last, age_s=self._age_s(part), ended=_ended(part))
        records = tuple(replace(one, record=self._record(one)) for one in part.processes)
        meta = complete_meta(_package.build_meta(replace(part, processes=records, session=well_typed(part.session))))
        whole = Profile(merge_tables(list(self._tables.values())), meta)
        now = Profile(merge_tables(pieces), meta)
        self._last = LiveReading(now, whole, seconds, self._age_s(part), _ended(part))
        return self._last

    def _record(self, process: _package.ProcessPart) -> dict[str, Any]:
        """What a process says of itself; what measuring it costs, its segment says until it has ended."""
        record, tables = well_typed(process.record), self._tables.get(process.stem)
        return record if record.get("cost") or tables is None else {**record, **stated_in(tables)}

    def _age_s(self, part: _package.Part) -> float:
        running = [process for process in part.processes if not process.complete and process.stem in self._stamps]
        oldest = min((self._stamps[process.stem][1] for process in running), default=0)
        return max(time.time() - oldest / 1e9, 0.0) if oldest else 0.0


def _span_s(tables: Tables) -> float:
    processes = tables["processes"]
    spans = (processes["end_ns"] - processes["start_ns"]).tolist()
    return max(spans, default=0) / 1e9


def _ended(part: _package.Part) -> bool:
    return bool(part.processes) and all(process.complete for process in part.processes)
