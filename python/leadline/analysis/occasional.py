"""Work of the loop that does not happen in every step: evaluation, checkpoints, what an epoch begins or ends with.

Shares of a step leave it out, since set-up looks the same by its counts. A comparison must not: it is told from set-up
by the source, where that is what ran, else by standing between lines of the same function that occur in every step.
"""

from __future__ import annotations

import re

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.columns import Mask, group_sums, nearest, subtree_sums
from leadline.analysis.loop import Loop, is_setup
from leadline.analysis.sourcecode import Sources
from leadline.profiles import Tree
from leadline.schema import FrameKind


@dataclass(frozen=True)
class Around:
    """Masks of nodes. `rare`: of the loop, but called too rarely to be part of every step; none of `loop.inside`.
    `outside`: of `loop.inside` by their counts, but the source says that they stand before or behind the loop."""

    rare: Mask
    outside: Mask
    validating: Mask
    """Nodes at which a framework begins to validate in the midst of its loop."""
    elsewhere: Mask
    """Before or behind the loop, as the source says, with what is not of it anyway."""
    lines: Mask
    """Nodes of the lines, in the loop's function, that not every step comes to: nearly everything below is rare, or the
    source says so (`if step % 100 == 0:`)."""


_MOSTLY = 20
_VALIDATES = (
    (r"/(?:lightning/pytorch|pytorch_lightning)/loops/evaluation_loop\.py$", r"^_?EvaluationLoop\.run$"),
    (r"/(?:lightning/fabric|torchtnt/framework)/.*eval\w*\.py$", r"^_?eval\w*$"),
    (r"/transformers/trainer\w*\.py$", r"^\w*Trainer\.(?:evaluate|evaluation_loop)$"),
    (r"/keras/src/backend/\w+/trainer\.py$", r"^\w*Trainer\.evaluate$"),
    (r"/fastai/learner\.py$", r"^Learner\._do_epoch_validate$"),
)
"""Files and functions with which frameworks that hold the loop validate in its midst, by the line of every step."""


def around(tree: Tree, loop: Loop, sources: Sources) -> Around:
    """What stands beside the lines through which every step goes."""
    rare, outside, branches = (np.zeros(len(tree), np.bool_) for _ in range(3))
    trains = _trains(tree, loop)
    numbers = tree.frames["line"][tree.frame_of]
    for level, lines in _levels(tree, loop).items():
        file, first, last, sure = _span(tree, sources, lines)
        here = tree.shape.children(level).tolist()
        others = [one for one in here if one not in lines and _same_function(tree, one, next(iter(lines)))]
        if sure and any(trains[one] and not first <= numbers[one] <= last for one in others):
            continue  # a loop inside of a step, `for optimizer in optimizers: optimizer.step()`
        for other in others:
            line = int(numbers[other])
            if first <= line <= last and file == int(tree.frames["file"][tree.frame_of[other]]):
                rare[other] = True
                branches[other] = _now_and_then(tree, sources, other, lines)
            elif sure:
                outside[other] = True
    candidates = rare
    rare, outside = (nearest(tree.shape, mask) >= 0 if mask.any() else mask for mask in (rare, outside))
    elsewhere = outside & ~rare
    compiling = nearest(tree.shape, tree.frame_rows(FrameKind.PHASE, "compile")[tree.frame_of]) >= 0
    validating = _validation(tree, loop)
    below = nearest(tree.shape, validating) >= 0
    outside = (elsewhere | below) & loop.inside
    rare = (rare | below) & ~loop.inside & ~is_setup(tree) & ~compiling
    return Around(rare, outside, validating, elsewhere, branches | _wholly(tree, loop, candidates, rare) | validating)


def _trains(tree: Tree, loop: Loop) -> Mask:
    """Nodes at or above what goes backward in most steps."""
    backward = nearest(tree.shape, tree.frame_rows(FrameKind.PHASE, "backward")[tree.frame_of]) >= 0
    often = backward & (tree.exclusive("call_time").count * 2 >= loop.steps)
    found: Mask = subtree_sums(tree.shape, often.astype(np.int64)) > 0
    return found


def _validation(tree: Tree, loop: Loop) -> Mask:
    """Nodes at which a framework begins to validate while its loop trains: not where validating is all that it does."""
    texts, frames = tree.tables.strings, tree.frames
    python = frames["kind"] == int(FrameKind.PYTHON)
    found = np.zeros(len(python), np.bool_)
    for file, name in _VALIDATES:
        files = [row for row in np.unique(frames["file"][python]).tolist() if re.search(file, texts[row])]
        for frame in np.flatnonzero(python & np.isin(frames["file"], files)).tolist() if files else ():
            found[frame] |= re.search(name, texts[int(frames["name"][frame])]) is not None
    if not found.any():
        return np.zeros(len(tree), np.bool_)
    at = found[tree.frame_of]
    outer = nearest(tree.shape, at)
    first: Mask = at & (outer[np.maximum(tree.shape.parent, 0)] < 0)
    return first if (outer[loop.anchors] < 0).any() else np.zeros(len(tree), np.bool_)


def _wholly(tree: Tree, loop: Loop, candidates: Mask, rare: Mask) -> Mask:
    """Of the candidates' nodes those below which there is little that every step does."""
    lines = np.zeros(len(tree), np.bool_)
    if not rare.any():
        return lines
    above = nearest(tree.shape, candidates)
    time = np.where(rare, np.maximum(tree.exclusive("time").sum, 0), 0)
    of_rare = group_sums(above, time, len(tree))
    of_all = group_sums(above, loop.time, len(tree))
    found: Mask = candidates & (of_rare > _MOSTLY * of_all) & (of_rare > 0)
    return found


def _levels(tree: Tree, loop: Loop) -> dict[int, set[int]]:
    """Parent to the Python nodes below it through which the anchors are reached: the lines of one function each."""
    found: dict[int, set[int]] = {}
    for row in loop.anchors[:50].tolist():
        for at in tree.path_rows(row):
            if tree.kinds[at] == int(FrameKind.PYTHON):
                found.setdefault(int(tree.parent[at]), set()).add(at)
    return found


def _span(tree: Tree, sources: Sources, lines: set[int]) -> tuple[int, int, int, bool]:
    """(row of the file, first line, last line) of the loop around these lines, and whether the source says so."""
    frames = tree.frame_of[list(lines)]
    numbers = sorted(tree.frames["line"][frames].tolist())
    file = int(tree.frames["file"][frames[0]])
    source = sources.of(tree.tables.strings[file])
    if source is None or source.tree is None:
        return file, numbers[0], numbers[-1], False
    # by the last line: the first may be the loop's own head, `for batch in loader:`
    outer = [block for block in source.loops(numbers[-1])[:1] if block.first <= numbers[0]]
    return (file, outer[0].first, outer[0].last, True) if outer else (file, 1, 0, False)


def _now_and_then(tree: Tree, sources: Sources, row: int, lines: set[int]) -> bool:
    """Whether the source says that only every n-th step comes to a line, which none of the lines of every step is."""
    frame = tree.frame_of[row]
    source = sources.of(tree.tables.strings[int(tree.frames["file"][frame])])
    branch = source.now_and_then(int(tree.frames["line"][frame])) if source is not None else range(0)
    return bool(branch) and not any(int(tree.frames["line"][tree.frame_of[one]]) in branch for one in lines)


def _same_function(tree: Tree, one: int, other: int) -> bool:
    a, b = int(tree.frame_of[one]), int(tree.frame_of[other])
    return all(tree.frames[column][a] == tree.frames[column][b] for column in ("kind", "file", "name", "first_line"))
