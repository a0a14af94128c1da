"""How a run's paths change over it: calls and time a step in its early, middle and late part.

From segments that the supervisor kept at equal intervals: three parts with about as many steps each. Only paths with
much of the late part are kept, so that what goes into the file has a bound.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leadline.analysis.functions import METRIC
from leadline.analysis.scopes import scopes
from leadline.profiles.errors import ProfileFileError
from leadline.profiles.interval import between
from leadline.profiles.reader import open_segment
from leadline.profiles.tables import Tables
from leadline.profiles.tree import Tree
from leadline.schema import FrameKind

_MOST_ROWS = 40
_FEWEST_STEPS = 3
_FEWEST_CALLS = 5

Key = tuple[str, int, str, str]
"""File, line, function of the user's line; operator (or function, by samples)."""
Sums = tuple[int, int, int, int]
"""Calls, ns, samples of CPU time, their ns."""
_NONE = (0, 0, 0, 0)


def growth(snapshots: Sequence[Path], last: Path) -> list[dict[str, Any]]:
    """Rows for `meta.json`: `file`, `line`, `function`, `what`, and by part of the run `steps`, `calls`, `ns`.

    Empty where the run was too short for two parts.
    """
    try:
        tables = [open_segment(one) for one in (*snapshots, last)]
    except ProfileFileError:
        return []
    parts = [_sums(Tree(between(now, before).tables)) for before, now in itertools.pairwise(thirds(tables))]
    parts = [
        (steps, sums)
        for steps, sums in parts
        if steps >= _FEWEST_STEPS or any(one[0] >= _FEWEST_CALLS for one in sums.values())
    ]
    if len(parts) < 2:
        return []
    late = parts[-1][1]
    keys = sorted(late, key=lambda key: -late[key][1])[:_MOST_ROWS]
    return [
        {
            "file": key[0],
            "line": key[1],
            "function": key[2],
            "what": key[3],
            "steps": [steps for steps, _ in parts],
            "calls": [sums.get(key, _NONE)[0] for _, sums in parts],
            "ns": [sums.get(key, _NONE)[1] for _, sums in parts],
            "samples": [sums.get(key, _NONE)[2] for _, sums in parts],
            "sampled_ns": [sums.get(key, _NONE)[3] for _, sums in parts],
        }
        for key in keys
    ]


def thirds(tables: Sequence[Tables]) -> list[Tables]:
    """The borders of three parts with about as many steps each; the first begins at the first segment, when much of
    what is done once is over. Where no steps are known, parts of equal length."""
    steps = [steps_of(one) for one in tables]
    if steps[-1] - steps[0] < _FEWEST_STEPS:
        steps = list(range(len(tables)))
    whole = steps[-1] - steps[0]
    borders = {0, len(tables) - 1, *(_nearest(steps, steps[0] + part * whole / 3) for part in (1, 2))}
    return [tables[at] for at in sorted(borders)]


def _nearest(numbers: Sequence[int], wanted: float) -> int:
    """The place of the number that is nearest to another one."""
    return min(range(len(numbers)), key=lambda at: abs(numbers[at] - wanted))


def steps_of(tables: Tables) -> int:
    """Steps that a segment knows of; 0 where nothing marks them."""
    return _steps(Tree(tables))


def _steps(tree: Tree) -> int:
    kinds, calls = tree.kinds, tree.exclusive("call_time").count
    steps = tree.frame_rows(FrameKind.PHASE, "step")[tree.frame_of] & (
        kinds[np.maximum(tree.parent, 0)] == int(FrameKind.THREAD)
    )
    optimizer = tree.frame_rows(FrameKind.PHASE, "optimizer")[tree.frame_of]
    return int(calls[steps].sum()) or int(calls[optimizer].max(initial=0))


def _sums(tree: Tree) -> tuple[int, dict[Key, Sums]]:
    """Steps, and calls and ns by line and operator; Python by function, from its samples (calls are samples)."""
    scope = scopes(tree)
    time, calls, samples = tree.exclusive("time"), tree.exclusive("call_time"), tree.exclusive(METRIC)
    operator = tree.kinds == int(FrameKind.OPERATOR)
    count = _steps(tree)
    found: dict[Key, Sums] = {}
    rows = np.flatnonzero((operator & (time.sum > 0)) | ((samples.sum > 0) & (scope.inner < 0)))
    for row in rows.tolist():
        user = int(scope.user[row])
        if user < 0:
            continue
        node = tree.node(user)
        name = tree.text("name", int(tree.frame_of[row])) if operator[row] else ""
        key = (node.file, node.line, node.name, name)
        sampled = int(samples.count[row]), int(samples.sum[row])
        more = (int(calls.count[row]), int(time.sum[row]), *sampled) if operator[row] else (*sampled, *sampled)
        before = found.get(key, _NONE)
        found[key] = (before[0] + more[0], before[1] + more[1], before[2] + more[2], before[3] + more[3])
    return count, found
