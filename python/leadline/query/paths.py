"""Which nodes a path means: one mask over the nodes per step, whatever the size of the tree.

A glob must match a whole name; `*` is any text, `?` any character. Of Python and native frames a pattern may also match
the file: its whole path, or its end from a folder on (`train.py`, `src/train.py` in quotes).
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from leadline.query.columns import Mask, Rows, TreeColumns
from leadline.query.syntax import Condition, Path, Pattern, Step
from leadline.schema import FrameKind

Decide = Callable[[Condition, Rows], Mask]
"""Which of some nodes a condition holds for."""


def matching(columns: TreeColumns, path: Path, decide: Decide) -> Mask:
    """The nodes at the end of `path`."""
    found: Mask | None = None
    for step in path.steps:
        here = _frames(columns, step)[columns.tree.frame_of]
        if found is not None:
            here &= children_of(columns, found) if step.child else below(columns, found)
        elif step.child:
            here &= columns.tree.parent == 0
        if step.condition is not None:
            rows = np.flatnonzero(here)
            here[rows[~decide(step.condition, rows)]] = False
        found = here
    assert found is not None  # a path has a step
    return found


def below(columns: TreeColumns, mask: Mask) -> Mask:
    """Nodes with a node of `mask` above them."""
    rows = np.flatnonzero(mask)
    opened = np.zeros(len(mask) + 1, np.int64)
    np.add.at(opened, columns.before[rows] + 1, 1)
    np.add.at(opened, columns.last[rows] + 1, -1)
    inside: Mask = np.cumsum(opened)[columns.before] > 0
    return inside


def above(columns: TreeColumns, mask: Mask) -> Mask:
    """Nodes with a node of `mask` below them."""
    there = np.zeros(len(mask) + 1, np.int64)
    there[columns.before[mask] + 1] = 1
    until = np.cumsum(there)
    found: Mask = until[columns.last + 1] > until[columns.before + 1]
    return found


def children_of(columns: TreeColumns, mask: Mask) -> Mask:
    """Nodes whose parent is in `mask`."""
    found: Mask = mask[np.maximum(columns.tree.parent, 0)]
    found[:1] = False
    return found


def parents_of(columns: TreeColumns, mask: Mask) -> Mask:
    """Nodes with a child in `mask`."""
    found = np.zeros(len(mask), np.bool_)
    parents = columns.tree.parent[mask]
    found[parents[parents >= 0]] = True
    return found


def _frames(columns: TreeColumns, step: Step) -> Mask:
    """Which rows of the frames table the step means."""
    frames = columns.tree.frames
    mask = np.ones(len(frames["kind"]), np.bool_)
    if step.kind is not None:
        mask &= frames["kind"] == int(step.kind)
    if step.line is not None:
        mask &= frames["line"] == step.line
    if step.file is not None:
        mask &= _texts(columns, "file", mask, step.file, ends=True)
    if step.name is not None:
        has_file = mask & np.isin(frames["kind"], (int(FrameKind.PYTHON), int(FrameKind.NATIVE)))
        mask &= _texts(columns, "name", mask, step.name) | (
            has_file & _texts(columns, "file", has_file, step.name, ends=True) if step.file is None else False
        )
    return mask


def _texts(columns: TreeColumns, column: str, among: Mask, pattern: Pattern, ends: bool = False) -> Mask:
    """Frames of `among` whose text matches; `ends`: an end from a `/` on is enough."""
    tree = columns.tree
    matches = matcher(pattern, ends)
    numbers = tree.frames[column][among]
    wanted = np.array([row for row in np.unique(numbers).tolist() if matches(tree.tables.strings[row])], np.int64)
    found = np.zeros(len(among), np.bool_)
    found[among] = np.isin(numbers, wanted)
    return found


def matcher(pattern: Pattern, ends: bool = False) -> Callable[[str], object]:
    """What tells whether a text matches; see the head of this file."""
    if pattern.how == "regex":
        return re.compile(pattern.text).search
    body = re.escape(pattern.text) if pattern.how == "exact" else glob_regex(pattern.text)
    return re.compile(rf"(?:.*/)?{body}" if ends else body, re.DOTALL).fullmatch


def glob_regex(glob: str) -> str:
    """The regular expression for a glob with `*` and `?`, to be matched whole. What stands between two `*` is found at
    its first place and not sought again (a look-ahead that is then taken as it was), so that no pattern is slow."""
    first, *others = ("".join("." if one == "?" else re.escape(one) for one in part) for part in re.split(r"\*+", glob))
    if not others:
        return first
    between = "".join(f"(?=(?P<part{number}>.*?{part}))(?P=part{number})" for number, part in enumerate(others[:-1]))
    return f"{first}{between}.*{others[-1]}"
