"""How each thread spent its time: operators, data loading, Python, idle.

operators and data loading are measured. What is left of the wall time is split by the thread's CPU time, which is not
measured apart inside and outside operators: left = wall - operators - data,   python = min(left, max(cpu - operators,
left * cpu / wall)),   idle = left - python. The first bound takes operators to have run on the CPU throughout; the
second takes the CPU share to be the same everywhere, which holds on a machine with too much to do. Both are
estimates: reports say so.
"""

from __future__ import annotations

from leadline.profiles import Profile
from leadline.profiles.records import Process, Thread
from leadline.report.model import TimeSplit

_WORTH_SHOWING = 0.005  # of the longest thread's wall time, spent in operators or data loading


def process_labels(profile: Profile) -> dict[int, str]:
    """By row: `rank 3`, for its children `rank 3 child 4711` (they inherit the rank), without ranks `process 4711`; all
    empty where there is only one process."""
    processes = profile.processes
    if len(processes) == 1:
        return {processes[0].row: ""}
    ranks = {process.pid: process.rank for process in processes}
    labels = {}
    for process in processes:
        if process.rank < 0:
            labels[process.row] = f"process {process.pid}"
        elif ranks.get(process.parent_pid) == process.rank and process.parent_pid != process.pid:
            labels[process.row] = f"rank {process.rank} child {process.pid}"
        else:
            labels[process.row] = f"rank {process.rank}"
    return labels


def time_splits(profile: Profile) -> tuple[TimeSplit, ...]:
    """One row per main thread, and per other thread that ran a noticeable part of the operators; by process, main
    first.
    """
    processes = {process.row: process for process in profile.processes}
    labels = process_labels(profile)
    longest = max((thread.wall_ns for thread in profile.threads), default=0)
    rows: list[tuple[int, bool, int, TimeSplit]] = []
    for thread in profile.threads:
        process = processes.get(thread.process)
        main = process is not None and _is_main(thread, process, profile.threads)
        busy = thread.operator_ns + thread.data_ns
        if thread.wall_ns <= 0 or not (main or busy >= _WORTH_SHOWING * longest):
            continue
        label = labels.get(thread.process, "")
        rows.append((thread.process, not main, -busy, _split(thread, label, main)))
    return tuple(row[3] for row in sorted(rows, key=lambda row: row[:3]))


def _is_main(thread: Thread, process: Process, threads: list[Thread]) -> bool:
    """The thread whose kernel id is the process id; where none is, the longest one."""
    own = [one for one in threads if one.process == process.row]
    if any(one.tid == process.pid for one in own):
        return thread.tid == process.pid
    return thread.row == max(own, key=lambda one: (one.wall_ns, -one.row)).row


def _split(thread: Thread, process: str, main: bool) -> TimeSplit:
    operators = min(max(thread.operator_ns, 0), thread.wall_ns)
    data = min(max(thread.data_ns, 0), thread.wall_ns - operators)
    left = thread.wall_ns - operators - data
    cpu = max(thread.cpu_ns, 0)
    python = min(left, max(cpu - operators, left * cpu // thread.wall_ns))
    return TimeSplit(process, thread.name, main, thread.wall_ns, operators, data, python, left - python)
