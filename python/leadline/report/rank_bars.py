"""A row a rank: its own work of one step, then what it waited for the others, aligned at the collective."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leadline._dataclass import dataclass, replace
from leadline.analysis import analysis_of
from leadline.analysis.breakdown import nearest_phase_is
from leadline.analysis.loop import of_steps
from leadline.analysis.ranks import RankView, is_folded_profile
from leadline.analysis.stragglers import imbalance, late_of
from leadline.analysis.workclass import classes_of_nodes
from leadline.profiles import Profile
from leadline.steps import NoSteps
from leadline.steps.of_profile import steps_of
from leadline.work.operators import CLASSES

MOST = 64


@dataclass(frozen=True)
class RankBar:
    """`work_ns` and `wait_ns` make up the rank's step; `late`: the others wait for it; `node`: its process."""

    rank: int
    host: str
    work_ns: int
    wait_ns: int
    late: bool
    node: int


def rank_bars(profile: Profile, waited_for: int = -1) -> tuple[RankBar, ...]:
    """In order of ranks, of at most MOST those that are late and then the first; empty where there are not several.
    `waited_for`: the rank that the verdict calls late."""
    rows = _folded(profile) if is_folded_profile(profile) else _beside(profile)
    if len(rows) < 2:
        return ()
    late = late_rows(profile, rows)
    marked = [replace(one, late=number in late or one.rank == waited_for >= 0) for number, one in enumerate(rows)]
    shown = sorted(marked, key=lambda one: (not one.late, one.rank))[:MOST]
    return tuple(sorted(shown, key=lambda one: one.rank))


def late_rows(profile: Profile, rows: Sequence[RankBar]) -> set[int]:
    """Whom the others wait for: those that the report's ranks name, where they are named."""
    if is_folded_profile(profile):
        return {row for one in imbalance(RankView(profile)).stragglers for row in one.ranks}
    return set(late_of(np.array([one.work_ns for one in rows], float), np.array([one.wait_ns for one in rows], float)))


def _folded(profile: Profile) -> list[RankBar]:
    view = RankView(profile)
    steps = view.steps
    wall, waits = view.column("wall"), view.column("communication")
    if not wall.any():
        return []
    nodes = {one.row: one.node.row for one in profile.processes}
    processes = profile.tables["ranks"]["process"].tolist()
    made = []
    for row, rank in enumerate(view.ranks):
        whole, wait = int(wall[row] / steps[row]), int(waits[row] / steps[row])
        node = nodes.get(int(processes[view.rows[row]]), -1)
        made.append(RankBar(rank.rank, rank.host, max(whole - wait, 0), min(wait, whole), False, node))
    return made


def _beside(profile: Profile) -> list[RankBar]:
    """Of a profile that holds the processes of several ranks one by one."""
    found = steps_of(profile)
    if isinstance(found, NoSteps) or len({one.rank for one in found.ranks if one.rank >= 0}) < 2:
        return []
    tree, scopes = profile.tree, analysis_of(profile).scopes
    steps = max((one.number for one in found.ranks), default=1)
    talks = (classes_of_nodes(tree) == CLASSES.index("communication")) & of_steps(tree, scopes, steps)
    beside = nearest_phase_is(tree, scopes, "on another thread")
    time = np.maximum(tree.exclusive("time").sum, tree.exclusive("wait_time").sum)  # which is a part of the time
    device = np.maximum(tree.exclusive("gpu_time").sum, 0)
    seen: dict[int, RankBar] = {}
    for one in found.ranks:
        if one.rank < 0 or one.number < 1 or one.rank in seen:
            continue
        node = profile.processes[one.process].node.row
        mine = scopes.process == node
        # with a device ranks wait inside the collective's kernel, else inside its call
        on_device = float(device[mine & talks].sum())
        # what a backend's thread does for a call is the same exchange
        waited = (on_device or max(float(time[mine & talks & here].sum()) for here in (beside, ~beside))) / one.number
        whole = one.mean_ns or float(time[mine].sum()) / one.number
        wait = int(min(waited, whole))
        seen[one.rank] = RankBar(one.rank, "", int(whole) - wait, wait, False, node)
    return [seen[rank] for rank in sorted(seen)]
