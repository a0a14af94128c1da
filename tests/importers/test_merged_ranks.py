"""Ranks that were merged into one file are processes of their own, each with its steps, threads and device work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.agree import said

from leadline.profiles import Profile
from leadline.schema import EventKind, FrameKind
from leadline.steps import Steps
from leadline.steps.of_profile import steps_of
from leadline.trace.importers import import_traces


def rank(pid: Any, device: int, long: int, correlation: int = 0) -> list[dict[str, Any]]:
    """Four steps of `long` µs with one kernel each."""
    found = []
    for step in range(4):
        at = 1000 * step
        place = {"ph": "X", "pid": pid, "tid": 7 if isinstance(pid, str) else pid}
        number = correlation + step + 1
        found += [
            {**place, "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": at, "dur": long},
            {**place, "cat": "cpu_op", "name": f"aten::op{device}", "ts": at + 1, "dur": 30},
            {**place, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 5, "dur": 5,
             "args": {"correlation": number}},
            {"ph": "X", "cat": "kernel", "name": f"kernel{device}", "pid": device, "tid": 7, "ts": at + 20,
             "dur": long - 40, "args": {"device": device, "stream": 7, "correlation": number}},
        ]  # fmt: skip
    return found


def imported(folder: Path, events: list[dict[str, Any]]) -> Profile:
    path = folder / "merged.json"
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return import_traces([path])


@pytest.mark.parametrize("apart", [0, 100], ids=["one number for all copies", "numbers of their own"])
def test_merged_ranks_are_processes(tmp_path: Path, apart: int) -> None:
    loader = [{"ph": "X", "pid": 30, "tid": 30, "cat": "cpu_op", "name": "aten::load", "ts": 5, "dur": 9}]
    profile = imported(tmp_path, [*rank(10, 0, 900), *rank(20, 1, 500, apart), *loader])
    assert [process.pid for process in profile.processes] == [10, 20]
    steps = steps_of(profile)
    assert isinstance(steps, Steps)
    walls = {profile.processes[one.process].pid: one.walls_ns for one in steps.ranks}
    assert set(walls[10]) == {1_000_000, 900_000} and set(walls[20]) == {1_000_000, 500_000}
    assert said.launched(profile) == ({("kernel0", "aten::op0"): 4, ("kernel1", "aten::op1"): 4}, 0)
    assert {(device.process, device.index) for device in profile.devices} == {(0, 0), (1, 1)}
    for number, process in enumerate(profile.processes):
        alone = imported(tmp_path, rank(process.pid, number, 900 if number == 0 else 500))
        of = profile.tables["steps"]
        mine = [profile.threads[row].process == process.row for row in of["thread"].tolist()]
        assert of["wall_ns"][mine].tolist() == alone.tables["steps"]["wall_ns"].tolist()


def test_labels_of_processes_tell_ranks(tmp_path: Path) -> None:
    profile = imported(tmp_path, [*rank("rank 3", 0, 900), *rank("rank 1", 1, 500)])
    assert sorted(process.rank for process in profile.processes) == [1, 3]
    assert sum(said.of_events(profile, EventKind.OPERATOR).count.values()) == 8
    assert said.of_tree(profile, FrameKind.OPERATOR).count == {"aten::op0": 4, "aten::op1": 4}
