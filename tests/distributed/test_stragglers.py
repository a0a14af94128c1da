"""Planted stragglers among 64 simulated ranks are named with their cause, and nobody else; differences by role are lawful."""

import random
from pathlib import Path

import pytest
from tests.distributed.simulated import MS, SimulatedRank

from leadline.distributed.merge import merge_files
from leadline.report.ranks import Ranks, ranks_of

STEPS = 200
PIPELINE, DATA, TENSOR = 4, 8, 2


def job(seed: int) -> list[SimulatedRank]:
    """64 ranks on 8 machines: pipeline stages of different size, of which the first alone loads data, 3 % noise, and
    sequences of different length per data-parallel replica."""
    chance = random.Random(seed)
    ranks = []
    weight = (1.25, 1.0, 0.95, 1.4)
    length = [chance.gauss(1, 0.08 / STEPS**0.5) for _ in range(DATA)]
    for rank in range(PIPELINE * DATA * TENSOR):
        stage, replica, shard = rank // (DATA * TENSOR), rank // TENSOR % DATA, rank % TENSOR
        noise = lambda: chance.gauss(1, 0.03)  # noqa: E731
        per_step = 60 * MS * weight[stage] * length[replica]
        ranks.append(
            SimulatedRank(
                rank,
                64,
                host=f"node{rank // 8}",
                role={"pp": stage, "dp": replica, "tp": shard},
                forward=int(per_step / 3 * noise() * STEPS),
                backward=int(2 * per_step / 3 * noise() * STEPS),
                optimizer=int(4 * MS * noise() * STEPS),
                data=int((6 * MS if stage == 0 else 0.01 * MS) * noise() * STEPS),
                outside=int(8 * MS * noise() * STEPS),
                steps=STEPS,
                calls=1000 * (stage + 1),
            )
        )
    return ranks


def measured(folder: Path, ranks: list[SimulatedRank]) -> Ranks:
    """Everybody waits for the slowest, so that the wall time of all is the same."""
    for one in ranks:
        for name in ("forward", "backward", "optimizer", "data", "outside"):
            value = getattr(one, name)
            setattr(one, name, value - value % (one.calls * STEPS))
    slowest = max(one.forward + one.backward + one.optimizer + one.data + one.outside for one in ranks)
    for one in ranks:
        own = one.forward + one.backward + one.optimizer + one.data + one.outside
        one.communication = slowest - own + 10 * MS * STEPS
        one.communication -= one.communication % (one.calls * STEPS)
        one.write(folder)
    found = ranks_of(merge_files([str(folder)]).profile)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(2))
def test_nobody_is_named_in_a_healthy_job(tmp_path: Path, seed: int) -> None:
    found = measured(tmp_path, job(seed))
    assert [one.sentence for one in found.late] == []
    (lawful,) = found.lawful
    assert lawful.startswith(("pp 3 works 1.4", "pp 3 works 1.3")), lawful


@pytest.mark.parametrize("seed", range(2))
def test_each_is_named_with_its_cause(tmp_path: Path, seed: int) -> None:
    ranks = job(seed)
    loader, clock, late, stuck = ranks[3], ranks[21], ranks[38], ranks[60]
    loader.data += 25 * MS * STEPS
    for name in ("forward", "backward", "optimizer"):
        setattr(clock, name, int(getattr(clock, name) / 0.8))
    late.outside += 12 * MS * STEPS
    stuck.backward = int(stuck.backward * 1.5)
    found = measured(tmp_path, ranks)
    named = {one.ranks: (one.cause, one.phase) for one in found.late}
    assert named == {
        (3,): ("data loading", ""),
        (21,): ("processor", ""),
        (38,): ("outside operators", ""),
        (60,): ("computation", "backward"),
    }, [one.sentence for one in found.late]
    assert all(one.waited_ns > 0 for one in found.late)


@pytest.mark.parametrize("seed", range(2))
def test_a_slow_machine_is_named_and_not_its_ranks(tmp_path: Path, seed: int) -> None:
    """Half of its stage stands on it, so the median of the peers would be its own."""
    ranks = job(seed)
    for one in ranks[40:48]:
        for name in ("forward", "backward", "optimizer"):
            setattr(one, name, int(getattr(one, name) * 1.2))
    found = measured(tmp_path, ranks)
    (slow,) = found.late
    assert (slow.host, slow.cause) == ("node5", "processor")
    assert "machine node5 (ranks 40-47)" in slow.sentence


def test_more_work_is_not_a_slow_processor(tmp_path: Path) -> None:
    ranks = job(9)
    ranks[50].forward, ranks[50].backward = int(ranks[50].forward * 1.3), int(ranks[50].backward * 1.3)
    ranks[50].calls = int(ranks[50].calls * 1.3)
    (more,) = measured(tmp_path, ranks).late
    assert (more.ranks, more.cause) == ((50,), "more work")


def test_few_steps_tell_nothing(tmp_path: Path) -> None:
    for rank in range(4):
        SimulatedRank(rank, 4, steps=4, data=(500 if rank == 1 else 1) * MS).write(tmp_path)
    found = ranks_of(merge_files([str(tmp_path)]).profile)
    assert found is not None and found.late == ()
    assert found.lawful == ("4 steps are too few to say which rank is late.",)


def test_analyze_names_the_rank_too(tmp_path: Path, capsys) -> None:
    from leadline.cli.main import main
    from leadline.profiles import write_profile

    (tmp_path / "ranks").mkdir()
    for rank in range(4):
        SimulatedRank(
            rank, 4, data=(900 if rank == 1 else 50) * MS, communication=(50 if rank == 1 else 900) * MS
        ).write(tmp_path / "ranks")
    write_profile(tmp_path / "job.leadline", merge_files([str(tmp_path / "ranks")]).profile)
    assert main(["analyze", str(tmp_path / "job.leadline"), "--rule", "imbalance"]) == 0
    assert "Rank 1 (node0) works" in capsys.readouterr().out
