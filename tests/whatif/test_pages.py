"""New pages in a trace of a CPU: half of them count, and the range says so."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.whatif import Graph, GraphBuilder, Phase, TaskKind, predict
from leadline.whatif.kinds import LaneKind
from leadline.whatif.pages import PAGES, without_new_pages

US = 1000
TENSOR = [1024, 256]
STREAM_US = 3 * 1024 * 256 * 4 * 0.1 / 1000  # two inputs and an output at 0.1 ns a byte


def program(clear_us: float) -> Graph:
    builder = GraphBuilder()
    main = builder.lane("main", LaneKind.THREAD)
    names = (("aten::add", STREAM_US, 2), ("aten::fill_", clear_us, 1), ("aten::mm", 400, 0))
    rows = []
    for name, us, operands in names:
        row = builder.task(name, TaskKind.CPU, main, round(us * US), phase=Phase.FORWARD)
        rows += [(row, {"Input Dims": [TENSOR] * operands, "Input type": ["float"] * operands})] * bool(operands)
    graph = builder.graph()
    graph.details = [detail for _, detail in rows]
    graph.tasks.write("detail")[[row for row, _ in rows]] = np.arange(len(rows))
    return graph


def test_clearing_as_fast_as_memory_has_no_new_pages() -> None:
    assert without_new_pages(program(STREAM_US / 3)) is None


def test_clearing_ten_times_as_slow_has() -> None:
    graph = program(10 * STREAM_US / 3)
    other = without_new_pages(graph)
    assert other is not None
    cleared = other.select(name="fill_").ids
    assert other.column("duration_ns")[cleared[0]] == pytest.approx(STREAM_US / 3 * US, rel=1e-3)
    assert graph.column("duration_ns")[cleared[0]] == pytest.approx(10 * STREAM_US / 3 * US, rel=1e-3)


def test_half_of_them_count() -> None:
    """A product twice as fast: its gain lies in the middle of what it is with all pages and with none."""
    gains = {}
    for clear_us in (STREAM_US / 3, 10 * STREAM_US / 3):
        (found,) = predict(program(clear_us), ["kernel_speedup"], {"kernel": "mm", "factor": "2"}).scenarios
        gains[clear_us] = found
    none, some = gains.values()
    rest = STREAM_US + STREAM_US / 3
    with_all = (rest + 3 * STREAM_US + 400) / (rest + 3 * STREAM_US + 200)
    with_none = (rest + 400) / (rest + 200)
    assert none.speedup == pytest.approx(with_none, rel=0.02)  # what recording cost is left out
    assert some.speedup == pytest.approx((with_all * with_none) ** 0.5, rel=0.02)
    assert some.low_gain < with_all < with_none < some.high_gain
    assert any(PAGES in text for text in some.assumptions)
    assert not any(PAGES in text for text in none.assumptions)
