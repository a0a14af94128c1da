"""What an engine does before it serves: loading, warm-up, allocation of the cache. Never in a share of serving."""

from __future__ import annotations

import numpy as np

from leadline.analysis.columns import Mask, nearest
from leadline.profiles import Tree
from leadline.schema import FrameKind

PHASE = "start-up"


def start_up(tree: Tree) -> Mask:
    """Nodes at or below a phase of that name."""
    frames = tree.frames
    names = [row for row in np.unique(frames["name"]).tolist() if tree.tables.strings[row] == PHASE]
    begins = (frames["kind"] == int(FrameKind.PHASE)) & np.isin(frames["name"], np.array(names, np.int64))
    mask: Mask = nearest(tree.shape, begins[tree.frame_of]) >= 0
    return mask
