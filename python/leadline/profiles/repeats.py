"""Operators that are seen twice for one call: a composite operator whose whole work is the operator of the same name.

torch.profiler folds such pairs into one when it makes its tables, so counts and totals by name leave the inner one out
here too; its own time still counts as the operator's own.
"""

from __future__ import annotations

import numpy as np

from leadline.profiles.measures import Measures
from leadline.profiles.tree import Tree


def without_repeats(tree: Tree) -> Measures:
    """`call_time` less the calls that were the whole of a call of the same name above them.

    Minimum and maximum of a node with both kinds of calls are those of all its calls: they cannot be told apart later.
    """
    calls = tree.exclusive("call_time")
    inner = tree.exclusive("repeated_call_time")
    count = calls.count - inner.count
    left = count > 0
    return Measures(
        count=count,
        sum=calls.sum - inner.sum,
        min=np.where(left, calls.min, np.iinfo(np.int64).max),
        max=np.where(left, calls.max, np.iinfo(np.int64).min),
        sum_squares=np.maximum(calls.sum_squares - inner.sum_squares, 0.0),
    )
