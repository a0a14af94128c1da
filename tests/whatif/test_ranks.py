"""Collectives of several ranks are matched also where a kernel was lost, groups differ or clocks drift apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leadline.trace.tables import TraceError
from leadline.whatif import Graph, TaskKind, load

Events = list[dict[str, Any]]


def span(cat: str, name: str, ts: float, dur: float, tid: int = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": tid, "args": args}


def collective(ts: float, dur: float, correlation: int, **args: Any) -> Events:
    recorded = {"correlation": correlation, "stream": 20, "device": 0, "Collective name": "allreduce", **args}
    return [
        span("cuda_runtime", "cudaLaunchKernel", ts - 6, 4, correlation=correlation),
        span("kernel", "ncclDevKernel_AllReduce", ts, dur, 20, **recorded),
    ]


def job(folder: Path, *ranks: Events, world: int | None = None) -> Graph:
    for number, events in enumerate(ranks):
        header = {"distributedInfo": {"rank": number, "world_size": world or len(ranks)}}
        content = {**header, "traceEvents": [span("cpu_op", "aten::add", 0, 20), *events]}
        (folder / f"rank{number}.json").write_text(json.dumps(content))
    return load(folder)


def joined(graph: Graph) -> list[list[int]]:
    """Correlation ids of the members of every collective."""
    groups: dict[int, list[int]] = {}
    for task in graph.select(kind=TaskKind.COMM):
        group = int(graph.column("group")[task])
        if group >= 0:
            groups.setdefault(group, []).append(int(graph.column("start_ns")[task]))
    return [sorted(found) for found in groups.values()]


@pytest.mark.parametrize("numbered", [True, False])
def test_a_lost_kernel_does_not_shift_the_others(numbered: bool, tmp_path: Path) -> None:
    ends = (1000, 3000, 5000, 7000, 9000)
    ranks = []
    for rank in range(3):
        events: Events = []
        for number, end in enumerate(ends):
            if (rank, number) == (1, 1):
                continue  # the record of this one was lost
            args: dict[str, Any] = {"Process Group Name": "0", "Process Group Ranks": "[0, 1, 2]"}
            args |= {"Seq": number} if numbered else {}
            events += collective(end - 50 * (rank + 1), 50 * (rank + 1), 10 + number, **args)
        ranks.append(events)
    graph = job(tmp_path, *ranks)
    assert sorted(len(members) for members in joined(graph)) == [2, 3, 3, 3, 3]
    assert graph.info.facts["collectives"] == 5


def test_numbers_that_contradict_themselves_are_not_believed(tmp_path: Path) -> None:
    args = {"Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Seq": 3}
    ranks = [[*collective(1000, 50, 5, **args), *collective(3000, 50, 6, **args)] for _ in range(2)]
    assert [len(members) for members in joined(job(tmp_path, *ranks))] == [2, 2]


def test_stages_of_a_pipeline_get_their_clock_through_what_they_share(tmp_path: Path) -> None:
    """Ranks 0 and 1 share one group, 1 and 2 another; rank 2 and 0 share none, and their clocks are 9 ms apart."""

    def member(group: str, at: float, off: float) -> Events:
        return collective(at + off, 50, int(at), **{"Process Group Name": group, "Process Group Ranks": group})

    early = [500.0, 2500.0, 4500.0]
    late = [1500.0, 3500.0]
    clocks = (0.0, 4000.0, 9000.0)
    parts = [
        [event for at in early for event in member("[0, 1]", at, clocks[0])],
        [event for at in early for event in member("[0, 1]", at, clocks[1])]
        + [event for at in late for event in member("[1, 2]", at, clocks[1])],
        [event for at in late for event in member("[1, 2]", at, clocks[2])],
    ]
    shifted = [[{**event, "ts": event["ts"]} for event in events] for events in parts]
    # the operator that opens each trace runs on the rank's own clock too
    for number, events in enumerate(shifted):
        events.append(span("cpu_op", "aten::mul", 20 + clocks[number], 20))
    graph = job(tmp_path, *shifted)
    assert sorted(len(members) for members in joined(graph)) == [2] * 5
    assert any("clocks disagree by up to" in text for text in graph.info.warnings)


def test_traces_of_jobs_of_other_sizes_are_refused(tmp_path: Path) -> None:
    job(tmp_path, collective(1000, 50, 5), collective(1000, 50, 5))
    path = tmp_path / "rank1.json"
    content = json.loads(path.read_text())
    content["distributedInfo"]["world_size"] = 64
    path.write_text(json.dumps(content))
    with pytest.raises(TraceError, match=r"different jobs: one of 2, one of 64"):
        load(tmp_path)


def test_missing_ranks_are_said(tmp_path: Path) -> None:
    graph = job(tmp_path, collective(1000, 50, 5), collective(1000, 50, 5), world=8)
    assert any("2 of the job's 8 ranks" in text for text in graph.info.warnings)
