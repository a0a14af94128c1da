"""A job's file counts the steps of its ranks as each rank's own file does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.distributed.simulated import MS, SimulatedRank

from leadline.analysis.ranks import RankView
from leadline.distributed.merge import merge_files
from leadline.profiles import Profile
from leadline.profiles.build import build
from leadline.profiles.step_rows import columns_of, of_steps, one_step
from leadline.profiles.tables import Tables
from leadline.profiles.writer import write_profile
from leadline.report.ranks import ranks_of
from leadline.steps.of_profile import steps_of

STEPS, STEP_NS = 8, 10 * MS


def rank_profile(rank: int, first: int, begun: bool) -> Profile:
    """A loop of eight timed steps whose first has the number `first`; the optimizer was called in each that ended."""
    simulated = SimulatedRank(rank, steps=STEPS, pid=1000 + rank).profile()
    ended = STEPS + (0 if begun or first == 0 else 1)
    drawn = build(
        f"process python train.py | pid={1000 + rank} rank={rank} start_ns=1000 end_ns={1000 + STEPS * STEP_NS}\n"
        f"  thread MainThread | tid={1000 + rank} wall_ns={STEPS * STEP_NS} operator_ns={STEPS * MS}\n"
        f"    phase step | call_time={STEPS * STEP_NS}/{STEPS}\n"
        f"    phase optimizer | time={ended * MS}/{ended} call_time={ended * MS}/{ended}\n"
        f"    operator aten::mm | time={ended * MS}/{ended} call_time={ended * MS}/{ended}"
    )
    rows = of_steps(one_step(first + number, STEP_NS) for number in range(STEPS))
    record: dict[str, Any] = {**simulated.meta["processes"][0], "started_at_ns": 1000, "first_step_begun": begun}
    columns = {**drawn.tables.columns, **columns_of({0: rows})}
    return Profile(Tables(columns), {**simulated.meta, "processes": [record]})


@pytest.mark.parametrize(("first", "begun"), [(0, False), (500, False), (500, True)])
@pytest.mark.parametrize("by", ["role", "rank"])
def test_steps_of_a_folder_are_those_of_a_file(tmp_path: Path, first: int, begun: bool, by: str) -> None:
    profiles = [rank_profile(rank, first, begun) for rank in range(3)]
    paths = [tmp_path / f"rank{rank}.leadline" for rank in range(3)]
    for path, profile in zip(paths, profiles, strict=True):
        write_profile(path, profile)
    alone = steps_of(profiles[0])
    assert alone.number == STEPS + (0 if begun or first == 0 else 1)
    folder = merge_files([str(tmp_path)], by=by).profile
    assert RankView(folder).steps.tolist() == [alone.number] * 3
    assert ranks_of(folder).steps == alone.number
    together = steps_of(folder)
    assert sum(one.number for one in {one.process: one for one in together.ranks}.values()) == 3 * alone.number
    assert together.main.mean_ns == pytest.approx(alone.mean_ns)
    nested = tmp_path / "half"
    nested.mkdir()
    write_profile(nested / "two.leadline", merge_files([str(path) for path in paths[:2]], by=by).profile)
    again = merge_files([str(nested / "two.leadline"), str(paths[2])], by=by).profile
    assert RankView(again).steps.tolist() == [alone.number] * 3
