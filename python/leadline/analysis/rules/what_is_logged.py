"""Part of `logging_in_loop`: what a step prints or logs, since what to do about it differs."""

from __future__ import annotations

from leadline._dataclass import dataclass
from leadline.analysis.columns import Rows
from leadline.analysis.rules.base import Case
from leadline.schema import FrameKind

_MOSTLY = 0.5


@dataclass(frozen=True)
class Logged:
    """`functions`: of loggers, a regular expression for the ends of their names; `does`: completes "Every step"."""

    functions: str
    does: str
    remedy: str


_NUMBERS = Logged(
    "",
    "prints or logs tensors",
    "Print numbers, not tensors, and every hundredth step; on a GPU every print waits for the device. "
    "Pass the values of a message that may not be shown as arguments: log.debug('%s', x).",
)
_KINDS = (
    Logged(
        r"(^|\.)(add_histogram(_raw)?|make_histogram|histogram_raw)$|(^|\.)Histogram\.",
        "logs histograms of tensors",
        "Log histograms every hundredth step, or once in each pass over the data. Each one goes through all values of "
        "a tensor, and is then written.",
    ),
    Logged(
        r"(^|\.)(add_(image|images|image_with_boxes|figure|video|audio|mesh|embedding|pr_curve\w*))$|(^|\.)Image\.",
        "logs images, figures or other media",
        "Log images and figures every hundredth step, or once in each pass over the data. Each one is drawn and "
        "compressed before it is written.",
    ),
)


def what_is_logged(case: Case, rows: Rows) -> Logged:
    """By the functions that most of the time of these nodes is below."""
    cost = case.time_and_samples[rows]
    for kind in _KINDS:
        inside = case.below(case.matching(FrameKind.PYTHON, kind.functions))[rows]
        if cost[inside].sum() >= _MOSTLY * max(float(cost.sum()), 1.0):
            return kind
    return _NUMBERS
