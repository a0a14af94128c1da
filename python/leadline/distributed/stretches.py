"""The files of a run that rolls, by when they were measured: one stretch of time after the other, all ranks of each."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from leadline.distributed.listing import list_files
from leadline.distributed.merge import merge_files
from leadline.distributed.plan import read_head
from leadline.profiles.errors import ProfileFileError
from leadline.profiles.profile import Profile


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
    for file in list_files(asked).files:
        try:
            head = read_head(file)
        except ProfileFileError:
            continue
        starts = [one.start_ns for one in head.processes if one.start_ns > 0]
        if starts and not head.folded:
            spans[file] = min(starts), max(one.end_ns for one in head.processes)
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
