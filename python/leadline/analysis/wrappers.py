"""Wrappers of libraries on a call path: functions made inside another one that only pass a call on.

`torch.optim.lr_scheduler` puts one around `optimizer.step`, transformers around each `forward`, `torch.no_grad` around
what it decorates. Neither whose file a wrapper is in nor its name tells what runs there: what it calls does. A function
like that which calls operators itself (an update that optax makes, `get_ema_avg_fn`) does the work and is none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from leadline.analysis.origin import Origin, origin
from leadline.profiles import Tree
from leadline.schema import FrameKind

_MADE_INSIDE = re.compile(r"\.<locals>\.[^<>.]+$")
_CALLED = frozenset((int(FrameKind.PYTHON), int(FrameKind.PHASE), int(FrameKind.MODULE)))
"""What a wrapper passes a call on to: a function, or a part of the step that is known by its own name."""


def without_wrappers(tree: Tree, path: Sequence[int]) -> list[int]:
    """The rows of a path, outermost first, without those of wrappers of libraries."""
    kept = []
    for row, below in zip(path, [*path[1:], -1], strict=True):
        if below < 0 or not passes_on(tree, row, below):
            kept.append(row)
    return kept


def passes_on(tree: Tree, row: int, below: int) -> bool:
    """Whether the node is of a library's wrapper, which here calls the node `below`."""
    if tree.kinds[row] != int(FrameKind.PYTHON) or int(tree.kinds[below]) not in _CALLED:
        return False
    node, called = tree.node(row), tree.node(below)
    made_inside = _MADE_INSIDE.search(node.name) is not None and origin(node.file) != Origin.USER
    return made_inside and not called.name.startswith(f"{node.name}.<locals>.")  # else a part of itself
