"""From the part directory of a run, however it ended, to the one file.

Every process that left a readable segment is in the result. A process that did not stop in order, left no segment or
left one that cannot be read gets a loss `process_incomplete` with a sentence; nothing is left out silently. The part
directory is only read.

Where the session has rolled its files (`marks`), the result is what came after the last of them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leadline import _package
from leadline._dataclass import dataclass, replace
from leadline._output import PROFILE, OutputError, check_kind
from leadline.profiles.align import on_one_clock
from leadline.profiles.builder import ProfileBuilder
from leadline.profiles.code import with_code
from leadline.profiles.errors import ProfileFileError
from leadline.profiles.flight import read_flight
from leadline.profiles.interval import Between, between
from leadline.profiles.merge import merge_tables
from leadline.profiles.meta import complete_meta, well_typed
from leadline.profiles.overhead import stated_in
from leadline.profiles.profile import Profile
from leadline.profiles.reader import open_segment
from leadline.profiles.roll_marks import going_on, segments_at, settled_mark
from leadline.profiles.tables import Tables, columns_from_rows
from leadline.profiles.tree import Tree
from leadline.profiles.writer import write_profile
from leadline.schema import FrameKind, LossKind

_PART_SUFFIX = ".part"
_SUFFIX = ".leadline"
_UINT32_MAX = 2**32 - 1


@dataclass(frozen=True)
class Recovered:
    """What became of a part directory."""

    profile: Profile
    complete: int
    """Processes that stopped in order."""
    partial: int
    """Processes taken from their last segment."""
    missing: int
    """Processes of which no segment could be read."""


class NothingNewError(ProfileFileError):
    """Everything in a part directory is in its files already."""


def recover_part(
    directory: str | os.PathLike[str], mark: Path | None = None, running: Collection[str] = ()
) -> Recovered:
    """The profile in a part directory, from `mark` on (by default its last one, if it has marks, once the file that
    ends there has been written). Raises ProfileFileError when it is none, or when no segment in it can be read,
    NothingNewError when none is new. `running`: stems of processes that live and were measured on."""
    mark = mark or settled_mark(Path(directory))
    earlier = segments_at(mark)
    try:
        part = _well_typed(_package.read_part(Path(directory)))
    except _package.PackageError as error:
        raise ProfileFileError(str(error)) from error
    part = _with_those_that_go_on(part, going_on(Path(directory)))
    running = frozenset(one.stem for one in part.processes if one.stem in running and not one.complete)
    killed = _killed_by_parent(part)
    found: list[Tables] = []
    absent: list[Tables] = []
    reasons: list[str] = []
    complete = 0
    without: set[str] = set()
    rolled = _Rolled()
    for process in part.processes:
        before = earlier.get(process.stem)
        if process.segment is None and process.complete:
            rolled.finished.add(process.stem)  # it has just begun: the next file has it
            continue
        if before is not None and _unchanged(process, before):
            rolled.finished.add(process.stem)
            continue
        try:
            if process.segment is None:
                raise ProfileFileError(_nothing_sentence(process, process.stem in running, process.stem in killed))
            tables = rolled.rest_of(process, before, _opened(process.segment, process.events))
        except ProfileFileError as error:
            reasons.append(str(error))
            absent.append(_only_the_loss(process, str(error)))
            without.add(process.stem)
            continue
        except Exception as error:  # whatever a damaged byte does, it costs this process only
            reasons.append(f"The segment of process {process.stem} cannot be read ({type(error).__name__}).")
            absent.append(_only_the_loss(process, reasons[-1]))
            without.add(process.stem)
            continue
        complete += process.complete
        tables = _with_completeness(tables, process, process.stem in running, process.stem in killed)
        by_itself = process.record.get("complete") is True  # a launcher ends the ranks that one takes with it
        found.append(tables if by_itself else _with_collectives(tables, process.flight))
    if not found and rolled.finished and not absent:
        raise NothingNewError(f"{os.fspath(directory)} holds nothing that its last file does not hold.")
    if not found:
        why = reasons[0] if reasons else "it holds no segment."
        raise ProfileFileError(f"Nothing can be recovered from {os.fspath(directory)}: {why}")
    # Where whoever began it has ended it, those that were left running do not make that untrue.
    left_running = running if complete else frozenset()
    meta = _package.build_meta(rolled.described(_with_those_that_go_on(part, left_running)))
    if mark is not None or (Path(directory) / _package.MARK_FILE).exists():
        meta.update(rolled.meta(meta, found))
    elif not meta["wall_ns"]:  # nobody was there to say when it ended: until the last that was written
        meta["wall_ns"] = max(_last_ns(found) - meta["started_at_ns"], 0)
    ended = bool(meta["complete"]) or (
        bool(killed) and all(one.complete or one.stem in killed for one in part.processes)
    )
    meta["complete"] = ended and without <= left_running | killed
    profile = on_one_clock(Profile(merge_tables([*found, *absent]), complete_meta(meta)))
    if part.code is not None:
        profile = with_code(profile, part.code)
    return Recovered(profile, complete, len(found) - complete, len(absent))


class _Rolled:
    """What was found of the processes of a file that begins where another one ended."""

    def __init__(self) -> None:
        self.finished: set[str] = set()
        """Stems of processes that have done nothing since."""
        self._began_ns: dict[str, int] = {}
        self._cost: dict[str, dict[str, Any]] = {}
        self._begun: set[str] = set()
        """Of those, whose first step in the file begins where a step of the file before ended."""
        self._bounds = self._extremes = 0

    def rest_of(self, process: _package.ProcessPart, before: _package.ProcessPart | None, tables: Tables) -> Tables:
        """What a process measured since the mark. Raises ProfileFileError where what it had then cannot be read."""
        then = _opened(before.segment, before.events) if before is not None and before.segment is not None else None
        if then is not None and _crossed_borders(then):
            self._begun.add(process.stem)
        made: Between = between(tables, then)
        if then is not None and then.rows("processes"):
            self._began_ns[process.stem] = int(then["processes"]["end_ns"][0])
        self._bounds += made.bounds
        self._extremes += made.extremes
        self._cost[process.stem] = stated_in(made.tables)
        return made.tables

    def described(self, part: _package.Part) -> _package.Part:
        """What processes say of themselves, those left out that are not in the file: they begin where it begins, and
        cost what they cost in it."""
        kept = [process for process in part.processes if process.stem not in self.finished]
        return replace(part, processes=tuple(replace(one, record=self._record(one)) for one in kept))

    def _record(self, process: _package.ProcessPart) -> dict[str, Any]:
        record, began_ns = process.record, self._began_ns.get(process.stem)
        if began_ns is not None or not record.get("cost"):
            record = {**record, **self._cost.get(process.stem, {})}
        if process.stem in self._begun:
            record = {**record, "first_step_begun": True}
        return record if began_ns is None else {**record, "started_at_ns": began_ns}

    def meta(self, meta: dict[str, Any], found: list[Tables]) -> dict[str, Any]:
        """Keys that differ in a file of a session that rolls them (docs/file-format.md)."""
        starts = [int(ns) for tables in found for ns in tables["processes"]["start_ns"].tolist() if ns > 0]
        began, ended = min(starts, default=0), _last_ns(found)
        told = {"run_started_at_ns": meta["started_at_ns"], "bounds": self._bounds, "extremes": self._extremes}
        return {"started_at_ns": began, "wall_ns": max(ended - began, 0), "rolled": told}


def _last_ns(found: list[Tables]) -> int:
    """When the last process wrote what was found of it."""
    return max((int(ns) for tables in found for ns in tables["processes"]["end_ns"].tolist()), default=0)


def _crossed_borders(tables: Tables) -> bool:
    """Whether a step had ended: one was timed, or an optimizer's had ended, which is a border too."""
    if tables.rows("steps"):
        return True
    tree = Tree(tables)
    called = tree.exclusive("call_time").count > 0
    return bool((called & tree.frame_rows(FrameKind.PHASE, "optimizer")[tree.frame_of]).any())


def _with_those_that_go_on(part: _package.Part, stems: frozenset[str]) -> _package.Part:
    """A process that goes on in the next file lacks nothing in this one."""
    processes = (replace(one, complete=True) if one.stem in stems else one for one in part.processes)
    return replace(part, processes=tuple(processes))


def _unchanged(process: _package.ProcessPart, before: _package.ProcessPart) -> bool:
    """Whether a process has written nothing since: it is the same file."""
    try:
        return process.segment is not None and before.segment is not None and process.segment.samefile(before.segment)
    except OSError:
        return False


def write_recovered(
    directory: str | os.PathLike[str],
    output: str | os.PathLike[str],
    running: Collection[str] = (),
    *,
    force: bool = False,
) -> Recovered:
    """As `recover_part`, and writes the file. Raises ProfileFileError, also for an `output` that is there and no
    profile; it is then as it was."""
    try:
        check_kind(Path(output), PROFILE, force=force)  # before the work
    except OutputError as error:
        raise ProfileFileError(str(error)) from None
    recovered = recover_part(directory, running=running)
    write_profile(output, recovered.profile, force=force)
    return recovered


def default_output(directory: str | os.PathLike[str]) -> Path:
    """NAME.leadline for NAME.leadline.part, beside it."""
    path = Path(directory)
    path = path if path.name else path.resolve()
    name = path.name.removesuffix(_PART_SUFFIX)
    return path.with_name(name if name.endswith(_SUFFIX) else name + _SUFFIX)


def _well_typed(part: _package.Part) -> _package.Part:
    """What processes said about themselves, less what a reader of the file would refuse."""
    processes = tuple(replace(process, record=well_typed(process.record)) for process in part.processes)
    return replace(part, session=well_typed(part.session), processes=processes)


def _opened(segment: Path, events: Path | None) -> Tables:
    """A segment with the events beside it, or without them and with a loss where they cannot be read."""
    if events is None:
        return open_segment(segment)
    try:
        return open_segment(segment, events=events)
    except ProfileFileError as error:
        return with_loss(open_segment(segment), 0, LossKind.EVENTS_DROPPED, f"The trace window is missing: {error}")


def _killed_by_parent(part: _package.Part) -> frozenset[str]:
    """Stems of processes that did not stop in order since another process of the session, which did or was ended so
    itself, sent them SIGKILL."""
    sent: dict[int, int] = {}
    for one in part.processes:
        listed = one.record.get("killed")
        for pid in listed if isinstance(listed, list) else ():
            if type(pid) is int:
                sent[pid] = _number(one.record.get("started_at_ns"))
    return frozenset(
        one.stem
        for one in part.processes
        if not one.complete
        and (began := sent.get(_number(one.record.get("pid")))) is not None
        and began <= _number(one.record.get("started_at_ns"))  # a number is given again
    )


def _number(value: object) -> int:
    return value if type(value) is int else -1


def _with_completeness(tables: Tables, process: _package.ProcessPart, running: bool, killed: bool) -> Tables:
    """`complete` as the process's side file says, and a loss for every process that did not stop in order."""
    count = tables.rows("processes")
    processes = {**tables["processes"], "complete": np.full(count, process.complete, "|u1")}
    changed = Tables({**tables.columns, "processes": processes})
    for row in [] if process.complete else range(count):
        changed = with_loss(changed, row, LossKind.PROCESS_INCOMPLETE, _incomplete_sentence(process, running, killed))
    return changed


def _nothing_sentence(process: _package.ProcessPart, running: bool, killed: bool) -> str:
    """Of a process without a segment."""
    reason = process.record.get("not_measured")
    if isinstance(reason, str) and reason:
        return reason
    if running:
        return f"Process {process.stem} was still running when measuring ended, and had written nothing yet."
    if killed:
        return f"Process {process.stem} was ended by its parent with SIGKILL before it had written anything."
    return f"Process {process.stem} ended before it had written anything."


def _incomplete_sentence(process: _package.ProcessPart, running: bool, killed: bool) -> str:
    pid = process.stem.partition("-")[0]  # a name of ours or of anybody's, so it stays a text
    if running:
        return f"Process {pid} was still running when measuring ended; what it did after its last segment is missing."
    if killed:
        return f"Process {pid} was ended by its parent with SIGKILL; what it did after its last flush is missing."
    not_written = process.record.get("not_written")
    if isinstance(not_written, str) and not_written:
        return f"The last segment of process {pid} could not be written: {not_written}"
    ended = process.record.get("exit")
    if isinstance(ended, dict) and ended.get("exec"):
        return f"Process {pid} replaced itself by another program; what it did after its last segment is missing."
    return f"Process {pid} ended without stopping; what it did after its last segment is missing.{_last(process)}"


def _last(process: _package.ProcessPart) -> str:
    """Where a process of a job was killed, as far as its recorder tells."""
    try:
        last = read_flight(process.flight).last if process.flight is not None else None
    except ProfileFileError:
        return ""
    if last is None:
        return ""
    return f" Its last collective was {last}, which {'had ended' if last.done_ns else 'is not known to have ended'}."


def with_loss(tables: Tables, process: int, kind: LossKind, sentence: str) -> Tables:
    """One more row in `losses`, its sentence as one more string."""
    strings = _more_strings(tables, [sentence.encode()])
    added = {"process": process, "kind": int(kind), "count": 1, "detail": tables.rows("strings")}
    row = columns_from_rows("losses", [added])
    losses = {name: np.concatenate([values, row[name]]) for name, values in tables["losses"].items()}
    return Tables({**tables.columns, "strings": strings, "losses": losses})


def _with_collectives(tables: Tables, flight: Path | None) -> Tables:
    """The last collectives of a process that did not stop in order; without them where its recorder is damaged."""
    if flight is None or not tables.rows("processes"):
        return tables
    try:
        recorded = read_flight(flight).collectives
    except ProfileFileError as error:
        return with_loss(tables, 0, LossKind.PROCESS_INCOMPLETE, f"Its last collectives are missing: {error}")
    texts: list[bytes] = []

    def row_of(text: str) -> int:
        texts.append(text.encode())
        return tables.rows("strings") + len(texts) - 1

    rows = [
        {
            "process": 0,
            "name": row_of(one.name),
            "group": row_of(one.group.name if one.group else ""),
            "description": row_of(one.group.description if one.group else ""),
            "group_size": one.group.size if one.group else 0,
            "sequence": one.sequence,
            "elements": one.elements,
            "start_ns": one.begin_ns,
            "returned_ns": one.returned_ns - one.begin_ns if one.returned_ns else -1,
            "done_ns": one.done_ns - one.begin_ns if one.done_ns else -1,
        }
        for one in recorded
    ]
    columns = {"collectives": columns_from_rows("collectives", rows), "strings": _more_strings(tables, texts)}
    return Tables({**tables.columns, **columns})


def _more_strings(tables: Tables, texts: Sequence[bytes]) -> dict[str, Any]:
    """The table of strings with `texts` behind it (merging makes strings distinct again)."""
    data, offsets = tables["strings"]["bytes"], tables["strings"]["offsets"]
    end = int(offsets[-1])
    ends = end + np.cumsum([len(text) for text in texts])
    return {
        "bytes": np.concatenate([data[:end], np.frombuffer(b"".join(texts), dtype="|u1")]),
        "offsets": np.concatenate([offsets, ends.astype(offsets.dtype)]),
    }


def _only_the_loss(process: _package.ProcessPart, sentence: str) -> Tables:
    """A process of which nothing but its side file is known."""
    record: dict[str, Any] = process.record
    builder = ProfileBuilder()
    program = record.get("program")
    argv = program.get("argv") if isinstance(program, dict) else None
    name = " ".join(str(word) for word in argv) if isinstance(argv, list) and argv else f"process {process.stem}"
    row = builder.process(
        name,
        pid=_uint32(record.get("pid")),
        parent_pid=_uint32(record.get("parent_pid")),
        complete=0,
    )
    builder.loss(row, LossKind.PROCESS_INCOMPLETE, 1, sentence)
    return builder.tables()


def _uint32(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value <= _UINT32_MAX else 0
