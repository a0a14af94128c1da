"""The measured and predicted timelines of the page: what is drawn where, and for how long."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leadline.whatif import load, predict, simulate
from leadline.whatif.export import strips
from leadline.whatif.export.spans import measured_slices, simulated_slices
from leadline.whatif.export.strips import BINS, LEVELS


def test_a_faster_cpu_is_drawn_half_as_long_on_the_same_axis(tmp_path: Path) -> None:
    events = []
    for step in range(2):
        for category, name, begin, length in (
            ("user_annotation", f"ProfilerStep#{step}", 0, 1000), ("cpu_op", "aten::mm", 0, 250),
            ("cpu_op", "aten::inner", 100, 100), ("cpu_op", "aten::add", 500, 250),
        ):  # fmt: skip
            event = {"ph": "X", "cat": category, "name": name, "ts": 1000 * step + begin, "dur": length}
            events.append({**event, "pid": 1, "tid": 1, "args": {}})
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    graph = load(path)
    (found,) = predict(graph, ["faster"], {"device": "cpu", "factor": "2"}).scenarios
    assert found.graph is not None and found.result is not None
    drawn = strips(graph, found.title, found.graph, found.result)
    assert drawn is not None and drawn.steps == (0, 1) and drawn.title == "faster cpu 2x"
    (lane,) = drawn.lanes
    busy = {
        which: sum(width * level / LEVELS for _, width, level in runs)
        for which, runs in (("measured", lane.measured), ("predicted", lane.predicted))
    }
    # 1000 of 2000 us are busy, an operator inside another one counts once, and 400 bins are what was measured; a bin at
    # the edge of an operator is drawn a little fuller than it is
    assert busy["measured"] == pytest.approx(400 * 1000 / 2000, abs=3)
    assert busy["predicted"] == pytest.approx(200 * 1000 / 2000, abs=3)


def test_an_operator_is_drawn_through_what_it_does_behind_its_last_call(tmp_path: Path) -> None:
    """A product of 250 us calls a trifle at its begin: all of it is drawn, measured and simulated alike."""
    events = []
    for name, begin, length in (("aten::mm", 0, 250), ("aten::resolve_conj", 10, 2), ("aten::add", 260, 40)):
        events.append({"ph": "X", "cat": "cpu_op", "name": name, "ts": begin, "dur": length, "pid": 1, "tid": 1})
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    graph = load(path)
    for found in (measured_slices(graph), simulated_slices(graph, simulate(graph))):
        (lane,) = found
        drawn = {
            graph.names[graph.column("name")[task]]: (end - start) / 1000
            for task, start, end in zip(lane.ids, lane.start_ns, lane.end_ns, strict=True)
        }
        assert drawn["aten::mm"] == 250
        assert drawn["aten::resolve_conj"] == 2
        assert drawn["aten::add"] == 40


def test_steps_that_are_drawn_take_the_mean_time(tmp_path: Path) -> None:
    events = []
    at = 0
    for step, length in enumerate((9000, 1000, 3000, 1000, 1010, 990, 5000)):
        for category, name in (("user_annotation", f"ProfilerStep#{step}"), ("cpu_op", "aten::mm")):
            event = {"ph": "X", "cat": category, "name": name, "ts": at, "dur": length, "pid": 1, "tid": 1, "args": {}}
            events.append(event)
        at += length
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    graph = load(path)
    drawn = strips(graph, "nothing", graph, simulate(graph))
    assert drawn is not None
    assert drawn.steps == (1, 2) and drawn.measured_ns == 4_000_000, "the mean of the six behind the warm-up is 2 ms"
    (lane,) = drawn.lanes
    assert lane.measured == lane.predicted == ((0, BINS, LEVELS),)
