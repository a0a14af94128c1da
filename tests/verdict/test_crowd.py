"""Who has the cores where child processes share them: by what they ran, not by how many they are."""

from __future__ import annotations

import pytest
from tests.analysis.test_findings import MS

from leadline.analysis.case import case_of
from leadline.profiles.build import build
from leadline.verdict.crowd import Crowd, crowd

STEPS = 10
WALL = 100 * MS * STEPS


def of(main: float, each: float, cores: int = 2, threads: int = 1, generations: int = 1) -> Crowd:
    """Two workers at a time on `cores`; `main` and `each`: the part of the run in which that process has a core;
    `threads`: of the operators; `generations`: of workers, one after the other."""
    lines = [
        "process train.py | pid=5",
        f"  thread MainThread | tid=5 wall_ns={WALL} cpu_ns={int(main * WALL)}",
        "    python main @ /home/ada/train.py:44",
        f"      phase step | call_time={WALL}/{STEPS}",
        f"      operator aten::mm | time={MS * STEPS}/{STEPS} call_time={MS * STEPS}/{STEPS}",
    ]
    life = WALL // generations
    for pid in range(6, 6 + 2 * generations):
        began = (pid - 6) // 2 * life
        lines += [
            f"process worker | pid={pid} parent_pid=5 start_ns={began} end_ns={began + life}",
            f"  thread MainThread | tid={pid} wall_ns={life} cpu_ns={int(each * life)}",
            "    python Data.__getitem__ @ /home/ada/train.py:12",
        ]
    profile = build("\n".join(lines))
    profile.meta["available"] = {"torch": {"habits": {"threads": {"threads": threads, "cores": cores}}}}
    return crowd(case_of(profile))


@pytest.mark.parametrize(
    ("main", "each", "who", "do", "children"),
    [
        (0.4, 0.7, "2 child processes share 2 cores", "Make what the child processes do cheaper", True),
        (0.9, 0.3, "2 child processes share 2 cores", "Start fewer processes", True),
        (0.2, 0.2, "other threads or programs had all cores", "Give it its own cores", True),
        (0.4, 0.02, "other threads or programs had all cores", "Give it its own cores", False),
        (0.0, 0.0, "2 child processes share 2 cores", "Start fewer processes", True),  # what ran is not known
    ],
)
def test_child_processes_have_the_cores_only_as_far_as_they_ran(
    main: float, each: float, who: str, do: str, children: bool
) -> None:
    found = of(main, each)
    assert (found.who, found.children) == (who, children)
    assert found.own == ("other" not in who)
    assert found.do.startswith(do)


@pytest.mark.parametrize(("number", "each", "own"), [(3, 0.6, True), (3, 0.2, False), (2, 0.9, False)])
def test_threads_of_the_program_that_compute_all_the_time_are_no_other_program(
    number: int, each: float, own: bool
) -> None:
    lines = ["process train.py | pid=5"]
    for tid in range(5, 5 + number):
        lines += [
            f"  thread {'MainThread' if tid == 5 else 'pool'} | tid={tid} wall_ns={WALL} cpu_ns={int(each * WALL)}",
            "    python main @ /home/ada/train.py:44",
            f"      operator aten::mm | time={MS * STEPS}/{STEPS} call_time={MS * STEPS}/{STEPS}",
        ]
    profile = build("\n".join(lines))
    profile.meta["available"] = {"torch": {"habits": {"threads": {"threads": 2, "cores": 2}}}}
    found = crowd(case_of(profile))
    assert found.own == own
    assert found.who == (f"{number} threads of the program share 2 cores" if own else Crowd().who)


def test_fewer_processes_are_advised_where_they_would_do_and_leave_a_core():
    """Tried: with one worker in place of two beside operators of two threads on two cores, the loop took as long."""
    assert of(0.9, 0.3).do.startswith("Start fewer processes")
    assert not of(0.9, 0.3, threads=2).do.startswith("Start fewer processes")
    assert not of(0.9, 0.45).do.startswith("Start fewer processes")  # one would have to compute 90 % of the time


def test_workers_of_each_pass_are_added_up_over_the_time_of_all():
    """Ten generations of two workers, each of which computes for three tenths of its life."""
    assert of(0.9, 0.3, generations=10).do.startswith("Start fewer processes")
    assert "busy" not in of(0.9, 0.3, generations=10).do
