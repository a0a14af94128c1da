"""For every node of a tree: whose line, module, phase and operator its measurements are booked on.

Everything that ranks call paths (hot paths, modules, phases, memory, rules) reads these columns, so "the user's line"
means the same in each of them. Each column has a row per node and -1 where there is none.

The user's line is the innermost Python frame of the user's own code; where a path has none, of an installed package;
else the innermost Python frame at all. A thread begins anew: nothing above it counts.
"""

from __future__ import annotations

import re

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.columns import Mask, Rows, above, at_rows, nearest
from leadline.analysis.origin import Origin, origin
from leadline.profiles import Tree
from leadline.schema import FrameKind


@dataclass(frozen=True)
class Scopes:
    """`user`, `module`, `phase`: row of the node whose frame that is. `outer`: the outermost operator (or region where
    there is none) since the user's line, module or phase last changed; `inner`: the nearest operator. `thread`,
    `process`: their nodes."""

    user: Rows
    module: Rows
    phase: Rows
    outer: Rows
    inner: Rows
    thread: Rows
    process: Rows


def scopes(tree: Tree) -> Scopes:
    """The columns of `tree`; `Analysis.scopes` keeps them."""
    kinds = tree.kinds
    border = (kinds == int(FrameKind.THREAD)) | (kinds == int(FrameKind.PROCESS))
    operator, region = kinds == int(FrameKind.OPERATOR), kinds == int(FrameKind.REGION)
    module, phase = kinds == int(FrameKind.MODULE), kinds == int(FrameKind.PHASE)
    user = user_lines(tree, border)
    changes = border | module | phase | (user == np.arange(len(tree)))
    outer = outermost(tree, operator, changes)
    return Scopes(
        user=user,
        module=within(tree, module, border),
        phase=within(tree, phase, border),
        outer=np.where(outer >= 0, outer, outermost(tree, region, changes)),
        inner=within(tree, operator, border),
        thread=nearest(tree.shape, kinds == int(FrameKind.THREAD)),
        process=nearest(tree.shape, kinds == int(FrameKind.PROCESS)),
    )


def frame_origins(tree: Tree) -> Rows:
    """`Origin` of every frame, by its file."""
    files, of_frame = np.unique(tree.frames["file"], return_inverse=True)
    return np.array([int(origin(tree.tables.strings[row])) for row in files.tolist()], np.int64)[of_frame]


def within(tree: Tree, wanted: Mask, border: Mask) -> Rows:
    """The nearest `wanted` node, none where a thread or process begins between."""
    found = nearest(tree.shape, wanted | border)
    return np.where(at_rows(wanted, found, 0) > 0, found, -1)


def user_lines(tree: Tree, border: Mask) -> Rows:
    """The user's line of every node; `border`: nodes where a thread or process begins."""
    python = tree.kinds == int(FrameKind.PYTHON)
    whose = frame_origins(tree)[tree.frame_of]
    user = np.full(len(tree), -1, np.int64)
    for one in sorted(Origin, reverse=True):
        user = np.where(user >= 0, user, within(tree, python & (whose == int(one)), border))
    return user


def outermost(tree: Tree, wanted: Mask, changes: Mask) -> Rows:
    """For every node the outermost `wanted` node below the nearest change."""
    seen = nearest(tree.shape, wanted | changes)
    first = wanted & (at_rows(wanted, above(tree.shape, seen), 0) == 0)
    return within(tree, first, changes)


def frames_in_files(tree: Tree, pattern: str) -> Mask:
    """Of each frame whether it is one of Python's in a file that the pattern finds."""
    compiled = re.compile(pattern)
    files, of_frame = np.unique(tree.frames["file"], return_inverse=True)
    text = tree.tables.strings
    hit = np.array([bool(compiled.search(text[row])) for row in files.tolist()], np.bool_)[of_frame]
    found: Mask = hit & (tree.frames["kind"] == int(FrameKind.PYTHON))
    return found


def in_called(tree: Tree, scopes: Scopes, pattern: str) -> Mask:
    """Nodes at or below such a frame, with none of the program's own in between: a program may itself run in a worker
    of multiprocessing, in a server's handler, or in a generator that tqdm iterates over."""
    hit = frames_in_files(tree, pattern)[tree.frame_of]
    if not hit.any():
        return hit
    depth = tree.shape.depth
    own = at_rows(frame_origins(tree)[tree.frame_of], scopes.user) == int(Origin.USER)
    found: Mask = at_rows(depth, nearest(tree.shape, hit)) > np.where(own, at_rows(depth, scopes.user), -1)
    return found
