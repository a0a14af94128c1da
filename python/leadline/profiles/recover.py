"""From the part directory of a run, however it ended, to the one file.

Every process that left a readable segment is in the result. A process that did not stop in order, left no segment or
left one that cannot be read gets a loss `process_incomplete` with a sentence; nothing is left out silently. The part
directory is only read.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from leadline import _package
from leadline.profiles.align import on_one_clock
from leadline.profiles.builder import ProfileBuilder
from leadline.profiles.errors import ProfileFileError
from leadline.profiles.merge import merge_tables
from leadline.profiles.meta import complete_meta, well_typed
from leadline.profiles.profile import Profile
from leadline.profiles.reader import open_segment
from leadline.profiles.tables import Tables, columns_from_rows
from leadline.profiles.writer import write_profile
from leadline.schema import LossKind

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


def recover_part(directory: str | os.PathLike[str]) -> Recovered:
    """The profile in a part directory. Raises ProfileFileError when it is none, or when no segment in it can be
    read."""
    try:
        part = _well_typed(_package.read_part(Path(directory)))
    except _package.PackageError as error:
        raise ProfileFileError(str(error)) from error
    found: list[Tables] = []
    absent: list[Tables] = []
    reasons: list[str] = []
    complete = 0
    for process in part.processes:
        try:
            if process.segment is None:
                reason = process.record.get("not_measured")
                raise ProfileFileError(
                    reason
                    if isinstance(reason, str) and reason
                    else f"Process {process.stem} ended before it had written anything."
                )
            tables = _opened(process.segment, process.events)
        except ProfileFileError as error:
            reasons.append(str(error))
            absent.append(_only_the_loss(process, str(error)))
            continue
        complete += process.complete
        found.append(_with_completeness(tables, process))
    if not found:
        why = reasons[0] if reasons else "it holds no segment."
        raise ProfileFileError(f"Nothing can be recovered from {os.fspath(directory)}: {why}")
    meta = _package.build_meta(part)
    meta["complete"] = bool(meta["complete"]) and not absent
    profile = on_one_clock(Profile(merge_tables([*found, *absent]), complete_meta(meta)))
    return Recovered(profile, complete, len(found) - complete, len(absent))


def write_recovered(directory: str | os.PathLike[str], output: str | os.PathLike[str]) -> Recovered:
    """As `recover_part`, and writes the file. Raises ProfileFileError, also for an `output` that is there and no
    profile; it is then as it was."""
    try:
        if Path(output).exists() and Path(output).stat().st_size and not _package.is_package(Path(output)):
            raise ProfileFileError(f"Will not replace {os.fspath(output)}: it is not a profile; choose another file.")
    except OSError as error:
        raise ProfileFileError(f"Cannot write {os.fspath(output)}: {error.strerror}.") from None
    recovered = recover_part(directory)
    write_profile(output, recovered.profile)
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
        return _with_loss(open_segment(segment), 0, LossKind.EVENTS_DROPPED, f"The trace window is missing: {error}")


def _with_completeness(tables: Tables, process: _package.ProcessPart) -> Tables:
    """`complete` as the process's side file says, and a loss for every process that did not stop in order."""
    count = tables.rows("processes")
    processes = {**tables["processes"], "complete": np.full(count, process.complete, "|u1")}
    changed = Tables({**tables.columns, "processes": processes})
    for row in [] if process.complete else range(count):
        changed = _with_loss(changed, row, LossKind.PROCESS_INCOMPLETE, _incomplete_sentence(process))
    return changed


def _incomplete_sentence(process: _package.ProcessPart) -> str:
    pid = process.stem.partition("-")[0]  # a name of ours or of anybody's, so it stays a text
    not_written = process.record.get("not_written")
    if isinstance(not_written, str) and not_written:
        return f"The last segment of process {pid} could not be written: {not_written}"
    ended = process.record.get("exit")
    if isinstance(ended, dict) and ended.get("exec"):
        return f"Process {pid} replaced itself by another program; what it did after its last segment is missing."
    return f"Process {pid} ended without stopping; what it did after its last segment is missing."


def _with_loss(tables: Tables, process: int, kind: LossKind, sentence: str) -> Tables:
    """One more row in `losses`, its sentence as one more string (merging makes strings distinct again)."""
    text = np.frombuffer(sentence.encode(), dtype="|u1")
    data, offsets = tables["strings"]["bytes"], tables["strings"]["offsets"]
    end = int(offsets[-1])
    strings = {
        "bytes": np.concatenate([data[:end], text]),
        "offsets": np.append(offsets, np.array(end + len(text), offsets.dtype)),
    }
    added = {"process": process, "kind": int(kind), "count": 1, "detail": tables.rows("strings")}
    row = columns_from_rows("losses", [added])
    losses = {name: np.concatenate([values, row[name]]) for name, values in tables["losses"].items()}
    return Tables({**tables.columns, "strings": strings, "losses": losses})


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
