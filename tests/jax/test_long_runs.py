"""Runs of a compiled function stand in the profile soon after they ended, not only when the program does."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from tests.capture.conftest import Workplace
from tests.jax.conftest import PROGRAMS, Ran

import leadline

_LATE_S = 2 + 5 + 2
"""Until runs are put in, until the next segment, and for a busy machine."""


def test_a_killed_program_has_the_runs_that_ended_before(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    ran = place.leadline("run", "-q", "-o", "killed.leadline", str(PROGRAMS / "long_runs.py"), str(_LATE_S))
    *ended, killed = (float(line) for line in ran.stdout.split())
    longest = max(after - before for before, after in pairwise(ended))
    due = sum(one < killed - _LATE_S - longest for one in ended)
    profile = leadline.open(tmp_path / "killed.leadline")
    assert due > 0
    assert Ran(tmp_path, profile, ran.stdout, ran.stderr).runs("jit(epoch)") >= due
    verdict = profile.verdict
    assert verdict.account is not None
    parts = {part.key: part.share for part in verdict.account.parts}
    assert verdict.kind == "compute", verdict.sentence
    assert parts["pool"] > parts.get("lock", 0) + parts.get("device", 0), parts
