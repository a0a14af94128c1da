"""All that a line of the program takes: what bounds a remedy for the line, whatever part of it was noticed."""

from __future__ import annotations

import numpy as np

from leadline.analysis.case import Case
from leadline.analysis.waiting import METRIC as WAIT


def line_ns(case: Case, row: int) -> float:
    """Of all steps, on the loop's thread: operators of the line and below it, forward and backward, the Python between
    them, and waits outside of operators."""
    line = case.user_line
    here = (line == line[row]) & case.on_own_thread if line[row] >= 0 else case.mask([row])
    waits = np.where(case.analysis.scopes.inner < 0, np.maximum(case.tree.exclusive(WAIT).sum, 0), 0)
    spent = float(case.time_and_samples[here].sum() + waits[here].sum()) + case.python_ns(here)
    return min(spent, float(case.total_ns))
