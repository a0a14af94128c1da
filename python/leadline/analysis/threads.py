"""Which thread of a process is its main one, and how many its operators use."""

from __future__ import annotations

from collections.abc import Mapping

from leadline.profiles import Profile, Thread, mains


def main_threads(profile: Profile) -> set[int]:
    """Rows of the main threads: those that the file names; of a process without one the longest, the first of
    equals."""
    named = mains.main_threads(profile.tables)
    best: dict[int, Thread] = {}
    for thread in profile.threads:
        known = best.get(thread.process)
        if known is None or _rank(thread, named) > _rank(known, named):
            best[thread.process] = thread
    return {thread.row for thread in best.values()}


def running_share(profile: Profile, node: int) -> float:
    """Of the wall time of the thread at this row of the tree, the part in which it had a core; 1 where that was not
    measured."""
    for thread in profile.threads:
        if thread.node.row == node and 0 < thread.cpu_ns < thread.wall_ns:
            return thread.cpu_ns / thread.wall_ns
    return 1.0


def of_operators(profile: Profile) -> tuple[int, int]:
    """(threads that one operator of torch may use, cores that the process may use: its affinity, cut by its control
    group's quota); 0 where that is not known."""
    told = profile.meta.get("available", {}).get("torch", {})
    habits = told.get("habits") if isinstance(told, dict) else None
    found = habits.get("threads") if isinstance(habits, dict) else None
    numbers = (found.get("threads"), found.get("cores")) if isinstance(found, dict) else (0, 0)
    threads, cores = (one if isinstance(one, int) else 0 for one in numbers)
    return threads, cores


def _rank(thread: Thread, named: Mapping[int, int]) -> tuple[bool, int]:
    return thread.row in named, thread.wall_ns
