"""For every node of a tree: whose line, module, phase and operator its measurements are booked on.

One pass, parents before children. Everything that ranks call paths (hot paths, modules, phases, memory) reads these
columns, so "the user's line" means the same in each of them. Each column has a row per node and -1 where there is
none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leadline.profiles import Tree
from leadline.report.source import origin
from leadline.schema import FrameKind

Rows = NDArray[np.int64]

_PROCESS, _THREAD = int(FrameKind.PROCESS), int(FrameKind.THREAD)
_PYTHON, _MODULE = int(FrameKind.PYTHON), int(FrameKind.MODULE)
_OPERATOR, _REGION, _PHASE = int(FrameKind.OPERATOR), int(FrameKind.REGION), int(FrameKind.PHASE)


@dataclass(frozen=True)
class Scopes:
    """`user`, `module`, `phase`: row of the node whose frame that is. `outer`: the outermost operator (or region)
    since the user's
    line, module or phase last changed; `inner`: the nearest operator. `thread`, `process`: their nodes."""

    user: Rows
    module: Rows
    phase: Rows
    outer: Rows
    inner: Rows
    thread: Rows
    process: Rows


def scopes(tree: Tree) -> Scopes:
    """The columns of `tree`.

    The user's line is the innermost Python frame of the user's own code; where a path has none, of an installed
    package; else the innermost Python frame at all.
    """
    parents, frames = tree.parent.tolist(), tree.frame_of.tolist()
    kinds = tree.frames["kind"].tolist()
    file_ids = tree.frames["file"].tolist()
    origins_by_file = {row: int(origin(tree.tables.strings[row])) for row in set(file_ids)}
    origins = [origins_by_file[row] for row in file_ids]

    size = len(parents)
    user, module, phase, outer, inner = ([-1] * size for _ in range(5))
    thread, process = [-1] * size, [-1] * size
    rank = [-1] * size  # origin of the user's line
    for row in range(1, size):
        above = parents[row]
        frame = frames[row]
        kind = kinds[frame]
        thread[row], process[row] = thread[above], process[above]
        if kind == _THREAD:
            thread[row] = row
            continue
        if kind == _PROCESS:
            process[row] = row
            continue
        user[row], rank[row], module[row], phase[row] = user[above], rank[above], module[above], phase[above]
        outer[row], inner[row] = outer[above], inner[above]
        if kind == _OPERATOR:
            inner[row] = row
            if outer[row] < 0 or kinds[frames[outer[row]]] == _REGION:
                outer[row] = row
        elif kind == _PYTHON:
            if origins[frame] >= rank[row]:
                user[row], rank[row], outer[row] = row, origins[frame], -1
        elif kind == _MODULE:
            module[row], outer[row] = row, -1
        elif kind == _PHASE:
            phase[row], outer[row] = row, -1
        elif kind == _REGION and outer[row] < 0:
            outer[row] = row
    columns = (user, module, phase, outer, inner, thread, process)
    return Scopes(*(np.array(column, np.int64) for column in columns))
