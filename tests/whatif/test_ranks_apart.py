"""Ranks whose clocks drift, that were never one run, and that processes of their own have read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.whatif.test_ranks import Events, collective, job, joined

from leadline.trace.source import sources
from leadline.trace.tables import TraceError
from leadline.trace.window import read_window
from leadline.whatif import TaskKind, load
from leadline.whatif.build.helpers import helped
from leadline.whatif.build.job import LocalRank, job_graph

ENDS = [400_000.0 * number for number in range(1, 41)]
"""Of collectives, over 16 s."""


def rank(offset_us: float, drift: float, ends: list[float]) -> Events:
    args = {"Process Group Name": "0", "Process Group Ranks": "[0, 1]"}
    events: Events = []
    for number, end in enumerate(ends):
        events += collective(end * (1 + drift) + offset_us - 50, 50, 10 + number, **args, Seq=number)
    return events


@pytest.mark.parametrize("drift", [60e-6, -150e-6])
def test_clocks_that_drift_are_aligned_all_the_way(drift: float, tmp_path: Path) -> None:
    graph = job(tmp_path, rank(0, 0, ENDS), rank(3000, drift, ENDS))
    assert [len(members) for members in joined(graph)] == [2] * len(ENDS)
    ends = graph.column("start_ns") + graph.column("measured_ns")
    for group in range(len(ENDS)):
        members = np.flatnonzero((graph.column("group") == group) & (graph.column("kind") == TaskKind.COMM))
        assert np.ptp(ends[members]) < 2_000
    half = abs(drift) * 1e6 / 2  # the job's time lies between the two
    assert any(f"drift apart by {half:.0f} µs a second" in text for text in graph.info.warnings)


def test_collectives_out_of_step_are_no_drift(tmp_path: Path) -> None:
    """One in four ends late on one rank; the clocks are the same."""
    late = [end + (90 if number % 4 == 0 else 0) for number, end in enumerate(ENDS)]
    graph = job(tmp_path, rank(0, 0, ENDS), rank(0, 0, late))
    assert not any("clocks" in text for text in graph.info.warnings)


def test_traces_of_different_runs_are_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    other = np.sort(rng.uniform(0, 16e6, len(ENDS))).tolist()
    hours = 5 * 3600e6
    for number, events in enumerate((rank(0, 0, ENDS), rank(hours, 0, other))):
        content = {"distributedInfo": {"rank": number, "world_size": 2}, "traceEvents": events}
        (tmp_path / f"rank{number}.json").write_text(json.dumps(content))
    with pytest.raises(TraceError, match="of different runs"):
        load(tmp_path)


def test_a_rank_that_agrees_with_nobody_is_said(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    other = np.sort(rng.uniform(0, 16e6, len(ENDS))).tolist()
    graph = job(tmp_path, rank(0, 0, ENDS), rank(0, 0, other))
    assert any("may be of another run" in text for text in graph.info.warnings)


def test_helpers_build_what_this_process_builds(tmp_path: Path) -> None:
    here = job(tmp_path, rank(0, 0, ENDS), rank(3000, 60e-6, ENDS))
    names = sorted(str(path) for path in tmp_path.iterdir())
    with helped([(name, 0) for name in names], None, 2) as (ranks, each):
        there = job_graph(ranks, each)
    for mine, theirs in ((here.tasks, there.tasks), (here.edges, there.edges), (here.waits, there.waits)):
        for name, values in mine.columns().items():
            assert np.array_equal(values, theirs.columns()[name]), name
    assert (here.names, here.layers, here.lanes) == (there.names, there.layers, there.lanes)
    assert here.info.warnings == there.info.warnings


def test_what_a_helper_refuses_is_raised_here(tmp_path: Path) -> None:
    (tmp_path / "rank0.json").write_text("{}")
    with pytest.raises(TraceError, match="no traceEvents"), helped([(str(tmp_path / "rank0.json"), 0)], None, 1):
        pass


def test_ranks_read_here_are_the_same_as_loaded(tmp_path: Path) -> None:
    loaded = job(tmp_path, rank(0, 0, ENDS), rank(0, 0, ENDS))
    read = [LocalRank(*read_window(source, None)) for source in sources(tmp_path)]
    assert np.array_equal(job_graph(read).column("start_ns"), loaded.column("start_ns"))


def test_one_rank_given_twice_is_refused(tmp_path: Path) -> None:
    for name in ("first", "second"):
        content = {"distributedInfo": {"rank": 3, "world_size": 8}, "traceEvents": rank(0, 0, ENDS)}
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    with pytest.raises(TraceError, match="2 of the 2 traces are of rank 3"):
        load(tmp_path)
