"""Where a program asks for a backward pass: what hangs below the call of autograd's engine itself."""

from __future__ import annotations

import numpy as np

from leadline.analysis.columns import Rows
from leadline.analysis.rules.base import Case


def backward_lines(case: Case) -> Rows:
    """Nodes of the loop in which a backward pass was asked for, on a line of the user's."""
    inside = case.in_files(r"(^|/)torch/autograd/(__init__|graph)\.py$") & case.loop.inside & (case.calls > 0)
    return np.flatnonzero(inside & (case.analysis.scopes.user >= 0))
