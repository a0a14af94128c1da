"""What else one turn of the loop does: lines beside the anchors' that call no operator, such as a sleep or pure Python.

Counts of operators tell which lines belong to a step; a line without operators has none. The source says which they
are: those in the body of the innermost loop around the anchors, and of the functions called from there.
"""

from __future__ import annotations

import numpy as np

from leadline.analysis.columns import Mask, Rows, nearest
from leadline.analysis.loop import Loop, is_setup, often
from leadline.analysis.origin import Origin, origin
from leadline.analysis.scopes import Scopes
from leadline.analysis.sourcecode import Block, Sources
from leadline.profiles import Tree
from leadline.schema import FrameKind

_ANCHORS = 50


def rest_of_turn(tree: Tree, loop: Loop, scopes: Scopes, sources: Sources) -> Mask:
    """Nodes that every turn of the loop comes to and that `loop.inside` does not have; none without the source."""
    wanted = np.zeros(len(tree), np.bool_)
    for anchor in loop.anchors[:_ANCHORS].tolist():
        for at in reversed(tree.path_rows(anchor)):
            if tree.kinds[at] != int(FrameKind.PYTHON):
                continue
            node = tree.node(at)
            if origin(node.file) != Origin.USER:
                continue
            source = sources.of(node.file)
            if source is None:
                break
            loops = [one for one in source.loops(node.line) if one.kind == "loop"]
            _mark(tree, sources, at, loops[-1] if loops else None, wanted)
            if loops:
                break
        else:
            return np.zeros(len(tree), np.bool_)  # no loop of the user's: nothing says where a turn ends
    if not wanted.any():
        return wanted
    compiling = nearest(tree.shape, tree.frame_rows(FrameKind.PHASE, "compile")[tree.frame_of]) >= 0
    found: Mask = (
        (nearest(tree.shape, wanted) >= 0)
        & often(tree, scopes, loop.steps)
        & ~loop.inside
        & ~is_setup(tree)
        & ~compiling
    )
    return found


def _mark(tree: Tree, sources: Sources, row: int, body: Block | None, wanted: Mask) -> None:
    """The lines of one function beside `row` that a turn comes to: all of them, or those in the body of the loop."""
    frames, mine = tree.frames, int(tree.frame_of[row])
    line = int(frames["line"][mine])
    source = sources.of(tree.tables.strings[int(frames["file"][mine])])
    beside: Rows = tree.shape.children(int(tree.parent[row]))
    for other in beside.tolist():
        frame = int(tree.frame_of[other])
        if any(frames[column][frame] != frames[column][mine] for column in ("kind", "file", "name", "first_line")):
            continue
        at = int(frames["line"][frame])
        in_body = body is None or body.first <= at <= body.last
        rare = source.now_and_then(at) if source is not None else range(0)
        if in_body and (not rare or line in rare):
            wanted[other] = True
