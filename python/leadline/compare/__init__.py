"""Comparing profiles: `diff(a, b)` says what changed, `judge(...)` whether a limit was passed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeAlias

from leadline.compare.comparison import Change, CompareError, Diff, Figure, compare
from leadline.compare.gate import Limits, Verdict, judge
from leadline.opening import open_any
from leadline.profiles import Profile

__all__ = ["Change", "CompareError", "Diff", "Figure", "Limits", "Verdict", "compare", "diff", "judge"]

Source: TypeAlias = "Profile | str | os.PathLike[str]"


def diff(a: Source | Sequence[Source], b: Source | Sequence[Source]) -> Diff:
    """What changed from `a` (before) to `b` (after): what `leadline.open` takes or gave, or several runs of each.

    Raises ProfileFileError for a file that cannot be read, CompareError for an empty side.
    """
    return compare(_opened(a), _opened(b))


def _opened(side: Source | Sequence[Source]) -> list[Profile]:
    sources = [side] if isinstance(side, Profile | str | os.PathLike) else list(side)
    return [one if isinstance(one, Profile) else open_any(one) for one in sources]
