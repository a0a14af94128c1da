"""The user's lines and the processes of a profile as rows. Times are nanoseconds, sizes bytes."""

from __future__ import annotations

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.columns import Mask, factorized, group_sums
from leadline.analysis.peaks import peaks_of
from leadline.analysis.scopes import Scopes
from leadline.profiles import Profile, Tree
from leadline.schema import MetricKind


@dataclass(frozen=True)
class LineRow:
    """Everything that is booked on one line: what was measured below it before another line of the user's. `node`: one
    of its frames in the tree; `peak_bytes`: what it held at the largest peak of one process and device."""

    file: str
    line: int
    function: str
    node: int
    time_ns: int
    calls: int
    gpu_time_ns: int
    wait_ns: int
    alloc_bytes: int
    peak_bytes: int


@dataclass(frozen=True)
class ProcessRow:
    """One process; times of its threads added up, the wall time that of the longest. `rank`: -1 where it has none."""

    name: str
    pid: int
    rank: int
    node: int
    wall_ns: int
    operators_ns: int
    data_ns: int
    cpu_ns: int
    gpu_time_ns: int
    threads: int
    complete: bool


def lines(tree: Tree, scopes: Scopes, kept: Mask) -> list[LineRow]:
    """The most device time first, then the most time."""
    frames, user = tree.frames, scopes.user
    keys = factorized(*(frames[name].astype(np.int64) for name in ("file", "line", "name")))
    booked = np.flatnonzero((user >= 0) & kept)
    found, first, group = np.unique(keys[tree.frame_of[user[booked]]], return_index=True, return_inverse=True)
    metrics = ("time", "gpu_time", "alloc_bytes", "wait_time", "sync_time")
    sums = {name: group_sums(group, tree.exclusive(name).sum[booked], len(found)).tolist() for name in metrics}
    calls = group_sums(group, tree.exclusive("call_time").count[booked], len(found)).tolist()
    peak = group_sums(group, _largest_peak(tree, scopes)[booked], len(found)).tolist()
    made = []
    for i, row in enumerate(first.tolist()):
        time, gpu, alloc, wait, sync = (int(sums[name][i]) for name in metrics)
        if not any((time, gpu, alloc, wait, sync, peak[i])):
            continue
        node = tree.node(int(user[booked[row]]))
        name = "" if node.name == "<module>" else node.name
        made.append(LineRow(node.file, node.line, name, node.row, time, calls[i], gpu, wait + sync, alloc, peak[i]))
    return sorted(made, key=lambda row: (-row.gpu_time_ns, -row.time_ns, row.file, row.line))


def _largest_peak(tree: Tree, scopes: Scopes) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """By node what it held then; moments of several processes or devices are never added up."""
    held = np.zeros(len(tree), np.int64)
    for peak in peaks_of(tree, scopes.process)[:1]:
        table = tree.tables["metrics"]
        of_kind = (table["metric"] == int(MetricKind.PEAK_LIVE_BYTES)) & (table["device"] == peak.device)
        rows = np.flatnonzero(of_kind & (scopes.process[table["node"]] == peak.process))
        np.add.at(held, table["node"][rows].astype(np.int64), table["sum"][rows])
    return held


def processes(profile: Profile) -> list[ProcessRow]:
    gpu = profile.tree.inclusive("gpu_time").sum
    made = []
    for one in profile.processes:
        own = [thread for thread in profile.threads if thread.process == one.row]
        made.append(
            ProcessRow(
                one.name,
                one.pid,
                one.rank,
                one.node.row,
                max([0, one.end_ns - one.start_ns, *(thread.wall_ns for thread in own)]),
                sum(thread.operator_ns for thread in own),
                sum(thread.data_ns for thread in own),
                sum(thread.cpu_ns for thread in own),
                int(gpu[one.node.row]),
                len(own),
                bool(one.complete),
            )
        )
    return made
