"""What is derived from a profile, as columns with a row per node. Pure: nothing is read from disk, nothing is worded.

analysis = analysis_of(profile)
analysis.scopes.user          # per node: row of the user's line; also module, phase, operator
analysis.inclusive("time")    # per node: sum with everything below
"""

from __future__ import annotations

from functools import cached_property

from leadline._once import once
from leadline.analysis.columns import Rows
from leadline.analysis.hotpaths import HotPaths
from leadline.analysis.peaks import Peak, peaks_of
from leadline.analysis.scopes import Scopes, scopes
from leadline.analysis.timesplit import Split, time_splits
from leadline.profiles import Profile

__all__ = ["Analysis", "analysis_of"]


class Analysis:
    """One profile and what is derived from it; each part is computed when first asked for, and kept."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.tree = profile.tree

    @cached_property
    def scopes(self) -> Scopes:
        return scopes(self.tree)

    @cached_property
    def hot_paths(self) -> HotPaths:
        return HotPaths(self.tree, self.scopes)

    @cached_property
    def peaks(self) -> list[Peak]:
        return peaks_of(self.tree, self.scopes.process)

    @cached_property
    def time_splits(self) -> list[Split]:
        return time_splits(self.profile, self.scopes)

    def exclusive(self, metric: str) -> Rows:
        """Sum of `metric` at each node, in its unit. Raises ValueError for a metric that does not exist."""
        return self.tree.exclusive(metric).sum

    def inclusive(self, metric: str) -> Rows:
        """Sum of `metric` at each node and below. Raises ValueError also for a metric that is not additive."""
        return self.tree.inclusive(metric).sum


@once
def analysis_of(profile: Profile) -> Analysis:
    """What is derived from a profile: report, findings and verdict share it."""
    return Analysis(profile)
