"""Phases of an engine that are in no share of serving: what it does before it serves (loading, warm-up, allocation of
the cache), and its wait for requests."""

from __future__ import annotations

from leadline.analysis.columns import Mask, nearest
from leadline.profiles import Tree
from leadline.schema import FrameKind

START_UP = "start-up"
NO_WORK = "no work"


def in_phase(tree: Tree, name: str) -> Mask:
    """Nodes at or below a phase of that name."""
    mask: Mask = nearest(tree.shape, tree.frame_rows(FrameKind.PHASE, name)[tree.frame_of]) >= 0
    return mask
