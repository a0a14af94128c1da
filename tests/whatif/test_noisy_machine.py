"""Training loops with noise, a finite queue and contention, whose truth is known: guessed waits, answers and ranges.

The table over many more loops is bench/results/whatif-synthetic.md; nothing here was used to choose a factor.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from machine import Op
from noisy import Loop, mean_step_ns, trace_of, trace_of_later_steps

from leadline.whatif import EdgeType, predict

BENCH = Path(__file__).resolve().parents[2] / "bench" / "whatif"
LOOPS = range(200, 224)


@pytest.fixture(scope="module")
def outcome():
    sys.path.insert(0, str(BENCH))
    try:
        from synthetic import run, summary
    finally:
        sys.path.remove(str(BENCH))
    answers, waits = run(LOOPS)
    return summary(answers), waits


def test_answers_are_near_the_truth(outcome):
    found, _ = outcome
    assert found["answers"] > 80
    assert found["median_error"] < 0.03
    assert found["p90_error"] < 0.1


def test_ranges_hold_the_truth_about_nine_times_of_ten(outcome):
    found, _ = outcome
    assert found["gain_coverage"] >= 0.85
    assert found["time_coverage"] >= 0.85
    assert found["width"] < 0.15, "a range that holds everything says nothing"


def test_waits_between_streams_are_found_without_a_record(outcome):
    _, (right, wrong, true) = outcome
    assert true > 100
    assert right / (right + wrong) >= 0.95
    assert right / true >= 0.9


def full_queue(depth: int) -> Loop:
    """A step of 60 launches of 5 us for kernels of 50: the CPU waits for room in the queue nearly all the time."""
    body = [op for _ in range(60) for op in (Op(0, "work", 1_000), Op(0, "launch", 5_000, 7, 50_000))]
    return Loop((*body, Op(0, "sync_device", 2_000), Op(0, "work", 5_000)), depth, 1.0, 0.01)


def test_a_launch_that_waits_for_room_is_no_cpu_time(tmp_path):
    loop = full_queue(16)
    graph = trace_of(loop, 3, 1, tmp_path, sync_records=True)
    assert graph.info.facts["queue_depth"] == pytest.approx(16, abs=1)
    assert (graph.edges["type"] == EdgeType.ROOM).sum() > 100
    calls = graph.select(name="cudaLaunchKernel").ids
    assert np.quantile(graph.column("duration_ns")[calls], 0.9) < 15_000 < graph.column("measured_ns")[calls].max()
    (faster,) = predict(graph, ["faster"], {"device": "gpu", "factor": "4"}).scenarios
    truth = mean_step_ns(loop, 2) / mean_step_ns(
        loop, 2, lambda op: [Op(0, op.kind, op.cpu_ns, op.stream, op.kernel_ns // 4)]
    )
    assert faster.speedup == pytest.approx(truth, rel=0.03)
    (cpu,) = predict(graph, ["faster"], {"device": "cpu", "factor": "2"}).scenarios
    assert cpu.speedup < 1.05, "the CPU has nothing to gain where the queue is full"


@pytest.mark.parametrize("depth", [0, 100])
def test_a_trace_that_begins_while_the_device_is_behind(depth, tmp_path):
    """Work of steps before the window is of none of its steps, and takes room in the queue; where every launch waits
    for room none has a usual time. Mixed precision was predicted at 1.07 where 2.4 was measured."""
    loop = Loop(full_queue(depth).body[:-2], depth, 1.0, 0.01)
    graph = trace_of_later_steps(loop, 8, 6, 1, tmp_path)
    assert graph.info.facts.get("queue_depth", 0) == depth
    assert graph.info.measured_ns / len(graph.info.steps) == pytest.approx(mean_step_ns(loop, 2), rel=0.03)
    assert len(graph.info.steps) == 6, "the first step is no warm-up: the device was behind"
    (faster,) = predict(graph, ["faster"], {"device": "gpu", "factor": "4"}).scenarios
    truth = mean_step_ns(loop, 2) / mean_step_ns(
        loop, 2, lambda op: [Op(0, op.kind, op.cpu_ns, op.stream, op.kernel_ns // 4)]
    )
    assert faster.speedup == pytest.approx(truth, rel=0.03)


def test_one_step_tells_less_than_eight(tmp_path):
    loop = full_queue(0)
    widths = []
    for steps in (1, 8):
        graph = trace_of(loop, steps, 1, tmp_path, sync_records=True)
        (found,) = predict(graph, ["faster"], {"device": "gpu"}).scenarios
        widths.append((found.high_ns / found.low_ns - 1, found.high_gain / found.low_gain - 1))
    assert widths[0][0] > 0.1 and widths[0][1] > 0.02, "a trace of one step knows nothing within a percent"
    assert widths[1][0] < widths[0][0] / 2 and widths[1][1] < widths[0][1]


def test_what_is_removed_takes_no_room_in_the_queue(tmp_path):
    graph = trace_of(full_queue(16), 3, 1, tmp_path, sync_records=True)
    assert (graph.edges["type"] == EdgeType.ROOM).any()
    (free,) = predict(graph, ["launch_free"]).scenarios
    left = free.graph.edges["type"] == EdgeType.ROOM
    calls = free.graph.edges["dst"][left]
    assert not (free.graph.column("name")[calls] == free.graph.name_id("graph launch")).any()
    # the device is what limits the loop, so a graph launch gains nothing much and costs nothing much
    assert 0.9 < free.speedup < 1.2
