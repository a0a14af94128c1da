"""The files of a run that rolls, by when they were measured: one stretch of time after the other, all ranks of each."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator

from leadline._dataclass import dataclass
from leadline.distributed.listing import list_files
from leadline.distributed.merge import merge_files
from leadline.distributed.plan import Head, ProcessHead, read_head
from leadline.profiles.errors import ProfileFileError
from leadline.profiles.lineage import clock_of, machine_of
from leadline.profiles.profile import Profile

_DRIFT_NS = 1_000_000_000
"""Clocks that are kept right move by less."""


@dataclass(frozen=True)
class Stretch:
    """What all ranks measured between two moments (CLOCK_REALTIME, ns), folded."""

    start_ns: int
    end_ns: int
    files: int
    profile: Profile


def stretches(asked: Iterable[str]) -> Iterator[Stretch]:
    """In their order; a file that spans several stands in the one it begins in. Raises ProfileFileError where none can
    be read; single files that cannot are left out, as in a merge."""
    spans: dict[str, tuple[int, int]] = {}
    heads = []
    for file in list_files(asked).files:
        try:
            head = read_head(file)
        except ProfileFileError:
            continue
        if not head.folded:
            heads.append(head)
    set_by = _clocks_set(heads)
    for head in heads:
        begun = [one.start_ns + set_by.get(_clock(one), 0) for one in head.processes if one.start_ns > 0]
        lasted = max((one.end_ns - one.start_ns for one in head.processes), default=0)
        if begun:
            spans[head.file] = min(begun), min(begun) + max(lasted, 0)
    if not spans:
        raise ProfileFileError("There is no file of a run there; give the folder or pattern of those that rolled.")
    length = max(int(statistics.median(end - start for start, end in spans.values())), 1)
    first = min(start for start, _ in spans.values())
    by_time: dict[int, list[str]] = {}
    for file, (start, _) in spans.items():
        by_time.setdefault(round((start - first) / length), []).append(file)
    for _, files in sorted(by_time.items()):
        profile = merge_files(sorted(files)).profile
        yield Stretch(min(spans[one][0] for one in files), max(spans[one][1] for one in files), len(files), profile)


def _clock(one: ProcessHead) -> tuple[str, int] | None:
    """The machine of a process since it was started, and what its clock of the day showed more than the one that nobody
    sets."""
    relation = clock_of(one.record)
    machine = str(machine_of(one.record, {}))
    return (machine, relation) if machine and relation is not None else None


def _clocks_set(heads: Iterable[Head]) -> dict[tuple[str, int] | None, int]:
    """By how much a machine's clock was set (ns) between a file and the last one of that machine: files are laid out
    as its clock is now, so that a step back does not put tonight's files among those of the hour before."""
    by_machine: dict[str, list[tuple[int, tuple[str, int]]]] = {}
    for head in heads:
        for one in head.processes:
            if clock := _clock(one):
                by_machine.setdefault(clock[0], []).append((one.start_ns - clock[1], clock))
    made: dict[tuple[str, int] | None, int] = {}
    for seen in by_machine.values():
        _, (_, newest) = max(seen)
        for _, clock in seen:
            set_ns = newest - clock[1]
            made[clock] = set_ns if abs(set_ns) > _DRIFT_NS else 0
    return made
