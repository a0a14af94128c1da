"""Which thread of a process is its main one."""

from __future__ import annotations

from leadline.profiles import Profile, Thread


def main_threads(profile: Profile) -> set[int]:
    """Rows of the main threads: the one whose kernel id is the process id; where none is, the longest of the process,
    the first of equals."""
    pids = {process.row: process.pid for process in profile.processes}
    best: dict[int, Thread] = {}
    for thread in profile.threads:
        if thread.process not in pids:
            continue
        known = best.get(thread.process)
        if known is None or _rank(thread, pids) > _rank(known, pids):
            best[thread.process] = thread
    return {thread.row for thread in best.values()}


def running_share(profile: Profile, node: int) -> float:
    """Of the wall time of the thread at this row of the tree, the part in which it had a core; 1 where that was not
    measured."""
    for thread in profile.threads:
        if thread.node.row == node and 0 < thread.cpu_ns < thread.wall_ns:
            return thread.cpu_ns / thread.wall_ns
    return 1.0


def _rank(thread: Thread, pids: dict[int, int]) -> tuple[bool, int]:
    return thread.tid == pids[thread.process], thread.wall_ns
