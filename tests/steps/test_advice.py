"""Advice follows from what a profile holds: a predicate each, on a profile that has it already."""

from __future__ import annotations

import pytest

from leadline.analysis.analyze import analyze
from leadline.profiles.build import build
from leadline.profiles.profile import Profile

MS = 1_000_000


def two_ranks(cpu_ms: tuple[int, int], talk_ms: tuple[int, int], wrapper: str = "/v/mine.py") -> Profile:
    """Ten steps of 100 ms of two ranks that exchange below a file."""
    lines = []
    for rank in (0, 1):
        lines += [
            f"process train.py | pid={5 + rank} rank={rank}",
            f"  thread main | tid={5 + rank} wall_ns={1000 * MS} cpu_ns={cpu_ms[rank] * MS}",
            "    python main @ /home/ada/train.py:43",
            f"      python forward @ {wrapper}:9",
            f"        operator c10d::allreduce_ | time={talk_ms[rank] * MS}/10 call_time={talk_ms[rank] * MS}/10",
            f"      operator aten::mm | time={(600 - 500 * rank) * MS}/10 call_time={(600 - 500 * rank) * MS}/10",
            "    python main @ /home/ada/train.py:44",
            f"      phase optimizer | time={MS}/10 call_time={MS}/10",
            f"    phase step | call_time={900 * MS}/9",
        ]
    return build("\n".join(lines))


def test_the_rank_that_comes_late_is_named_and_not_the_one_that_waits() -> None:
    """Rank 0 spends longer in operators, but runs as long: it waits there for rank 1."""
    (found,) = analyze(two_ranks((100, 100), (600, 50)), ["imbalance"])
    assert found.title.startswith("Rank 1 is late")
    assert analyze(two_ranks((100, 100), (600, 590)), ["imbalance"]).findings == ()
    (found,) = analyze(two_ranks((900, 100), (600, 590)), ["imbalance"])
    assert found.title.startswith("Rank 0 works")


@pytest.mark.parametrize(("talk_ms", "waits"), [(600, "55.0"), (1500, "95.0")], ids=["two threads", "overlapping"])
def test_exchanges_at_one_time_count_once(talk_ms: int, waits: str) -> None:
    """The backward pass of rank 0 waits 60 ms of a step of 100 ms for what the backend's thread does meanwhile; or has
    several exchanges under way at once, together longer than the step."""
    lines = []
    for rank, talk in ((0, talk_ms), (1, 50)):
        lines += [
            f"process train.py | pid={5 + rank} rank={rank}",
            f"  thread main | tid={5 + rank} wall_ns={1000 * MS} cpu_ns={100 * MS}",
            "    python main @ /home/ada/train.py:43",
            f"      operator c10d::allreduce_ | time={talk * MS}/10 call_time={talk * MS}/10",
            "    python main @ /home/ada/train.py:44",
            f"      phase optimizer | time={MS}/10 call_time={MS}/10",
            f"    phase step | call_time={900 * MS}/9",
            f"  thread pt_gloo_runloop | tid={50 + rank} wall_ns={1000 * MS} cpu_ns={10 * MS}",
            f"    operator gloo:all_reduce | time={talk * MS}/10 call_time={talk * MS}/10",
        ]
    (found,) = analyze(build("\n".join(lines)), ["imbalance"])
    assert found.title == f"Rank 1 is late: the others wait {waits} ms a step for it"


@pytest.mark.parametrize(
    ("wrapper", "has", "never"),
    [
        ("/v/site-packages/torch/nn/parallel/distributed.py", "overlaps the backward pass already", "as Distributed"),
        ("/v/site-packages/torch/distributed/fsdp/_fully_shard.py", "reshard_after_forward", "DistributedData"),
        ("/v/mine.py", "DistributedDataParallel", "already"),
    ],
)
def test_what_a_wrapper_does_already_is_no_advice(wrapper: str, has: str, never: str) -> None:
    (found,) = analyze(two_ranks((100, 100), (600, 590), wrapper), ["communication"])
    assert has in found.remedy
    assert never not in found.remedy
    assert found.gain.high_ns <= found.gain.of_ns
