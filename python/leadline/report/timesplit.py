"""How each thread spent its time: operators, data loading, Python, idle.

operators and data loading are measured. What is left of the wall time is split by the thread's CPU time, which is not
measured apart inside and outside operators: left = wall - operators - data,   python = min(left, max(cpu - operators,
left * cpu / wall)),   idle = left - python. The first bound takes operators to have run on the CPU throughout; the
second takes the CPU share to be the same everywhere, which holds on a machine with too much to do. Both are
estimates: reports say so.
"""

from __future__ import annotations

from leadline.profile import Profile
from leadline.profile.records import Process, Thread
from leadline.report.model import TimeSplit

_WORTH_SHOWING = 0.005  # of the longest thread's wall time, spent in operators or data loading


def process_label(process: Process, alone: bool) -> str:
    """`rank 3`, else `process 4711`; empty where there is only one process."""
    if alone:
        return ""
    return f"rank {process.rank}" if process.rank >= 0 else f"process {process.pid}"


def time_splits(profile: Profile) -> tuple[TimeSplit, ...]:
    """One row per main thread, and per other thread that ran a noticeable part of the operators; by process, main
    first.
    """
    processes = {process.row: process for process in profile.processes}
    longest = max((thread.wall_ns for thread in profile.threads), default=0)
    rows: list[tuple[int, bool, int, TimeSplit]] = []
    for thread in profile.threads:
        process = processes.get(thread.process)
        main = process is not None and _is_main(thread, process, profile.threads)
        busy = thread.operator_ns + thread.data_ns
        if thread.wall_ns <= 0 or not (main or busy >= _WORTH_SHOWING * longest):
            continue
        label = process_label(process, len(processes) == 1) if process else ""
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
