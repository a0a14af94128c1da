"""The ledger of a step, replay by causes, and ranges: what they must hold whatever the trace."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from dialects import CPU_DIALECTS, DIALECTS, program, write
from noisy import draw_loop, trace_of

from leadline.whatif import Graph, GraphBuilder, LaneKind, TaskKind, gain, load, predict, replay, simulate
from leadline.whatif.ledger import ledger
from leadline.whatif.ranges import Doubts, ranges, step_error
from leadline.whatif.residuals import causal, medians, typical

US = 1000


def graph_of(folder: Path, *, device: bool) -> Graph:
    dialect = DIALECTS[0] if device else CPU_DIALECTS[0]
    path = folder / "trace.json"
    path.write_text(json.dumps(write(program(device=device), dialect)))
    return load(path)


@pytest.mark.parametrize("device", [True, False])
def test_every_nanosecond_is_booked(device: bool, tmp_path: Path) -> None:
    report = replay(graph_of(tmp_path, device=device))
    assert sum(row.spent_ns for row in report.ledger) == pytest.approx(report.replayed_ns)
    assert all(0 <= row.confidence <= 1 for row in report.ledger)
    names = {row.name for row in report.ledger}
    assert "data loading" in names and "operators and calls: optimizer" in names


@pytest.mark.parametrize("seed", range(8))
def test_every_nanosecond_of_a_noisy_loop_is_booked(seed: int, tmp_path: Path) -> None:
    graph = trace_of(draw_loop(seed), 3, seed, tmp_path, sync_records=False)
    result = simulate(graph)
    assert sum(row.spent_ns for row in ledger(graph, result)) == pytest.approx(result.makespan_ns / 3)


def test_python_that_happens_once_is_a_residual_that_nothing_explains() -> None:
    build = GraphBuilder()
    main = build.lane("main", LaneKind.THREAD)
    for step in range(3):
        build.task("aten::mm", TaskKind.CPU, main, 100 * US, step=step)
        build.task("(python)", TaskKind.CPU, main, (900 if step == 1 else 10) * US, step=step)
    graph = build.graph()
    rows = {row.name: row for row in replay(graph).ledger}
    python = rows["Python between events"]
    assert python.sort == "residual"
    assert python.spent_ns == pytest.approx(920 * US / 3)
    assert python.confidence == pytest.approx(30 / 920)
    # by causes alone the pause does not come back: two pauses of 10 us and one that was 900
    assert replay(graph).causal_error == pytest.approx((330 - 1220) / 1220)


@pytest.mark.parametrize(("pause_us", "unsure"), [(10, False), (9000, True)])
def test_what_nothing_explains_may_grow_with_the_batch(pause_us: int, unsure: bool) -> None:
    """A pause that happens once is most of three steps: that a larger batch costs no more of it is not sure."""
    build = GraphBuilder()
    main = build.lane("main", LaneKind.THREAD)
    stream = build.lane("stream 7", LaneKind.STREAM, device=0)
    for step in range(3):
        launch = build.task("cudaLaunchKernel", TaskKind.CPU, main, 100 * US, step=step)
        build.task("kernel", TaskKind.GPU, stream, 10 * US, launch=launch, step=step)
        build.task("(python)", TaskKind.CPU, main, (pause_us if step == 1 else 10) * US, step=step)
    (found,) = predict(build.graph(), ["batch_size"]).scenarios
    assert found.speedup > 1.9
    assert (found.low_gain < 1.3) == unsure


def test_a_pin_is_gone_by_causes_alone() -> None:
    build = GraphBuilder()
    main, stream = build.lane("main", LaneKind.THREAD), build.lane("stream 7", LaneKind.STREAM)
    launch = build.task("cudaLaunchKernel", TaskKind.CPU, main, 5 * US)
    pinned = build.task("kernel", TaskKind.GPU, stream, 10 * US, launch=launch, latency_ns=5 * US)
    graph = build.graph()
    graph.tasks.write("earliest_ns")[pinned] = 500 * US
    assert simulate(graph).makespan_ns == 510 * US
    assert simulate(causal(graph)).makespan_ns == 15 * US


def test_medians_are_of_equals_and_a_single_value_says_nothing_about_itself() -> None:
    key, value = np.array([1, 1, 1, 2, 3, 3]), np.array([5, 7, 100, 40, 8, 9])
    assert medians(key, value).tolist() == [7, 7, 7, 40, 8, 8]
    assert typical((key,), value).tolist() == [7, 7, 7, 8, 8, 8]


def test_ranges_are_paired_and_shared() -> None:
    doubts = Doubts(facts={"a fact": (0.2, -0.2)})
    steady = ranges(1.5, 1.0, [1e9] * 50, [0.0] * 50, doubts, 1.01)
    uneven = ranges(1.5, 1.0, [0.5e9, 1.5e9] * 25, [0.0] * 50, doubts, 1.01)
    # unsteady steps widen the time; the gain they share stays what it is
    assert (uneven.low_gain, uneven.high_gain) == (steady.low_gain, steady.high_gain)
    assert uneven.high_ns / uneven.low_ns > steady.high_ns / steady.low_ns
    assert steady.low_gain == pytest.approx(1.5 * math.exp(-0.18), rel=0.02)
    again = ranges(1.5, 1.0, [1e9] * 50, [0.0] * 50, doubts, 1.01)
    assert again == steady


@pytest.mark.parametrize("speedup", [1.0, 3.0, 500.0])
def test_one_step_is_never_sure(speedup: float) -> None:
    found = ranges(speedup, 1.0, [1e9], [0.0], Doubts(), 1.01)
    assert found.high_ns / found.low_ns > 1.1
    assert (found.high_gain / found.low_gain > 1.05) == (speedup != 1.0), "what changes nothing changes nothing"


def test_more_steps_tell_more() -> None:
    errors = [step_error([1e9] * count) for count in (1, 2, 4, 16)]
    assert errors == sorted(errors, reverse=True) and errors[0] > 3 * errors[-1]


def test_a_short_step_that_gains_much_says_little_about_the_mean() -> None:
    """Nine steps of a second that gain nothing, one of a millisecond that gains twofold."""
    build = GraphBuilder()
    main = build.lane("main", LaneKind.THREAD)
    for step in range(10):
        build.task("aten::mm", TaskKind.CPU, main, 1_000_000 * US if step else 500 * US, step=step)
        if not step:
            build.task("aten::extra", TaskKind.CPU, main, 500 * US, step=step)
    graph = build.graph()
    edited = graph.copy()
    edited.remove(edited.select(name="aten::extra"))
    value, low, high = gain(graph, edited)
    assert value == pytest.approx(1.0, abs=1e-4)
    assert 0.99 < low <= high < 1.01


def test_more_samples_are_never_sure_and_never_give_more_than_themselves() -> None:
    found = ranges(2.0, 2.0, [1e9] * 20, [0.0] * 20, Doubts(), 1.01, most_gain=2.0)
    assert 1.85 < found.low_gain < 1.99 and found.high_gain == pytest.approx(2.0)
    many = ranges(490.0, 512.0, [1e9] * 20, [0.0] * 20, Doubts(), 1.01, most_gain=512.0)
    assert many.low_gain < 400 and many.high_gain <= 512.0000001
