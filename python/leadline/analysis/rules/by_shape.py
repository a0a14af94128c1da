"""Operators by the shapes of their inputs (`leadline why`, `--shapes`), as several rules ask for them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from leadline.analysis.columns import Mask, Rows
from leadline.analysis.rules.base import Case
from leadline.work.operators import CLASSES

Shape = tuple[int, ...]

_MOST_NODES = 300
PRODUCTS = tuple(CLASSES.index(one) for one in ("matrix product", "convolution", "attention", "recurrent"))
"""Classes of operators that multiply inputs of two shapes, which is no broadcasting: `[N, 1]` times `[1, M]`."""


def shapes_of(case: Case, row: int) -> list[Shape]:
    """Of an operator's inputs in their order, () for one that is no tensor; nothing where shapes were not recorded."""
    recorded = case.tree.node(row).detail.get("shapes")
    if not isinstance(recorded, list):
        return []
    return [_shape(one) for one in recorded]


def _shape(one: object) -> Shape:
    """() for a list of tensors too: a list of shapes in traces of torch.profiler."""
    if not isinstance(one, list) or not all(isinstance(size, int) for size in one):
        return ()
    return tuple(one)


def tensor_shapes(case: Case, row: int) -> list[Shape]:
    """The same without what is no tensor, or one without dimensions."""
    return [one for one in shapes_of(case, row) if one]


def broadcast(given: Sequence[Shape]) -> Shape:
    """The shape that these are broadcast to; (0,) where they are not, as in a product or a concatenation."""
    sides = [set(side) - {1} for side in itertools.zip_longest(*(one[::-1] for one in given), fillvalue=1)]
    if any(len(side) > 1 for side in sides):
        return (0,)
    return tuple(max(side, default=1) for side in sides)[::-1]


def largest(case: Case, mask: Mask) -> Rows:
    """Those of these nodes that take most time with what is below them, the longest first."""
    rows: Rows = np.flatnonzero(mask & (case.inclusive_time > 0))
    return rows[np.argsort(-case.inclusive_time[rows], kind="stable")][:_MOST_NODES]
