"""Steps that ended without being timed, by process."""

from __future__ import annotations

from collections.abc import Mapping

from leadline.profiles import Profile
from leadline.profiles.fold.restore import stored_ranks
from leadline.profiles.lineage import record_of_rows
from leadline.profiles.step_rows import StepRows, untimed
from leadline.steps.recorded import Recorded


def untimed_steps(profile: Profile, recorded: Mapping[int, Recorded]) -> dict[int, int]:
    """Of each process how many steps ended that were not timed; where ranks are folded into it, of all of them."""
    if ranks := stored_ranks(profile.tables):
        found: dict[int, int] = {}
        for rank, process in zip(ranks, profile.tables["ranks"]["process"].tolist(), strict=True):
            found[process] = found.get(process, 0) + rank.steps_untimed
        return found
    return {
        row: untimed(recorded[row].rows if row in recorded else StepRows(), record)
        for row, record in enumerate(record_of_rows(profile))
    }
