"""Part of `redundant_work`: a function that makes a constant over several lines, such as the angles of positions.

In training, an operator that autograd does not record depends on no parameter and on nothing that came through one. A
function that begins with a new constant and has no operator with a backward pass computes the same in every layer, but
where it draws random numbers or picks by value.
"""

from __future__ import annotations

import numpy as np

from leadline.analysis.columns import Rows, nearest
from leadline.analysis.origin import Origin
from leadline.analysis.rules.base import Case
from leadline.analysis.scopes import frame_origins
from leadline.schema import FrameKind

_BY_VALUE = (
    r"rand|bernoulli|dropout|multinomial|normal_|uniform_|argm|topk|sort|unique|one_hot|scatter|nonzero|scalar|max|min"
)


def constant_function(case: Case, row: int) -> tuple[str, Rows] | None:
    """` in rotary (net.py:12)` and the operators of the function that `row` stands in, in all modules; None where it is
    a module's own `forward`, or where its result may differ from module to module."""
    if not case.in_phase("backward").any():
        return None
    tree, frames = case.tree, case.tree.frames
    python = frames["kind"] == int(FrameKind.PYTHON)
    code = (python & (frame_origins(tree) >= int(Origin.PACKAGE)))[tree.frame_of]
    at = int(nearest(tree.shape, code)[row])
    if at < 0 or case.name(at).rpartition(".")[2] in ("forward", "__call__", "<module>"):
        return None
    frame = int(tree.frame_of[at])
    same = python.copy()
    for column in ("file", "name", "first_line"):
        same &= frames[column] == frames[column][frame]
    below = case.below(same[tree.frame_of] & (case.analysis.scopes.module >= 0)) & case.loop.inside
    if (below & case.in_phase("backward")).any() or (below & case.matching(FrameKind.OPERATOR, _BY_VALUE)).any():
        return None
    node = tree.node(at)
    line = case.line_at(node.file, node.line)
    return f" in {case.name(at)} ({line.short})", np.flatnonzero(case.first_of(below & case.called))
