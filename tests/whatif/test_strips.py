"""The measured and predicted timelines of the page: what is drawn where, and for how long."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from leadline.whatif import load, predict
from leadline.whatif.export import strips


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
    page = strips(graph, found.title, found.graph, found.result)
    assert "Of the first 2 steps" in page and "with faster cpu 2x" in page
    busy = {}
    for label, inside in re.findall(r"aria-label='([^']+)'[^>]*>(.*?)</svg>", page):
        bars = re.findall(r"width=(\d+) height=10 fill-opacity=([\d.]+)", inside)
        busy[label.rsplit(", ", 1)[1]] = sum(int(width) * float(opacity) for width, opacity in bars)
    # half of the time is busy, an operator inside another one counts once, and 400 bins are what was measured; a bin at
    # the edge of an operator is drawn a little fuller than it is
    assert busy["measured"] == pytest.approx(200, abs=10)
    assert busy["predicted"] == pytest.approx(100, abs=10)
