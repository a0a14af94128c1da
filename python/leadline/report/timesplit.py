"""The split of each thread's time in words: labels of processes, and the lines where each part happened."""

from __future__ import annotations

from leadline.analysis import Analysis
from leadline.analysis.ranks import is_folded_profile
from leadline.profiles import Profile
from leadline.profiles.lineage import parent_rows
from leadline.report.model import SplitPlace, TimeSplit
from leadline.report.paths import PathWords


def process_labels(profile: Profile) -> dict[int, str]:
    """By row: `rank 3`, for its children `rank 3 child 4711` (they inherit the rank), without ranks `process 4711`; all
    empty where there is only one process. No two are alike: `process 7 (2)` is another one with that pid."""
    processes = profile.processes
    if len(processes) == 1:
        return {processes[0].row: ""}
    if is_folded_profile(profile):  # a process is a group of ranks, and its node says which
        return {process.row: process.node.name for process in processes}
    parents = parent_rows(profile)
    labels = {}
    for process in processes:
        parent = parents[process.row]
        if process.rank < 0:
            labels[process.row] = f"process {process.pid}"
        elif parent >= 0 and processes[parent].rank == process.rank:
            labels[process.row] = f"rank {process.rank} child {process.pid}"
        else:
            labels[process.row] = f"rank {process.rank}"
    seen: dict[str, int] = {}
    for row, label in labels.items():  # containers and machines share pids: equal labels are numbered
        seen[label] = seen.get(label, 0) + 1
        if seen[label] > 1:
            labels[row] = f"{label} ({seen[label]})"
    return labels


def time_splits(analysis: Analysis, words: PathWords) -> tuple[TimeSplit, ...]:
    """One per thread that matters, by process, main threads first."""
    labels = process_labels(analysis.profile)
    made = []
    for split in analysis.time_splits:
        thread = analysis.profile.threads[split.thread]
        places = [
            SplitPlace(part, place, found.time_ns)
            for part, several in split.places.items()
            for found in several
            if (place := words.place(found.row)) is not None
        ]
        made.append(
            TimeSplit(
                process=labels.get(thread.process, ""),
                thread=thread.name,
                main=split.main,
                wall_ns=split.wall_ns,
                **{f"{part}_ns": value for part, value in split.parts_ns.items()},
                device_wait_running_ns=split.spun_ns,
                estimated=split.estimated,
                places=tuple(places),
            )
        )
    return tuple(made)


def threads_left_out(analysis: Analysis) -> tuple[int, int]:
    """How many threads ran and are not among the splits, since they ran for a small part of the time, and how long."""
    shown = {split.thread for split in analysis.time_splits}
    rest = [one for one in analysis.profile.threads if one.row not in shown and (one.operator_ns or one.cpu_ns)]
    return len(rest), sum(max(one.operator_ns, one.cpu_ns) for one in rest)
