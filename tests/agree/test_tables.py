"""A recorded file, read by a second reader: the same totals, inclusive values and names as everybody shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.agree.tables import Tables

import leadline
from leadline.profiles import Profile
from leadline.profiles.tables import Tables as Tables_
from leadline.profiles.tables import empty_columns
from leadline.schema import EventKind, MetricKind
from leadline.steps import Steps
from leadline.steps.of_profile import steps_of

PHASES = ("data", "optimizer", "compile", "collection", "saving")
"""Whose columns add up to no more than a step."""

PROGRAM = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    model(torch.ones(8, 16)).sum().backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "train.py").write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "leadline", "run", "-o", "out.leadline", "--trace", "steps=3", "train.py"]
    subprocess.run(command, cwd=folder, check=True, timeout=120, capture_output=True, env=dict(os.environ))
    return folder / "out.leadline"


def test_exclusive_and_inclusive_values_are_those_of_the_tables(recorded: Path) -> None:
    tables, profile = Tables(recorded), leadline.open(recorded)
    for metric in (MetricKind.TIME, MetricKind.CALL_TIME):
        name = metric.name.lower()
        assert int(tables.exclusive(metric).sum()) == int(profile.tree.exclusive(name).sum.sum())
    assert [tables.name(row) for row in range(len(profile.tree.parent))] == [
        profile.tree.text("name", int(frame)) for frame in profile.tree.frame_of
    ]


def test_parts_never_exceed_wholes(recorded: Path) -> None:
    tables = Tables(recorded)
    columns = tables.columns
    own, whole = tables.exclusive(MetricKind.TIME), tables.exclusive(MetricKind.CALL_TIME)
    assert (own >= 0).all()
    measured = whole > 0
    assert (own[measured] <= whole[measured]).all()
    assert (columns["metrics.min"] <= columns["metrics.max"]).all()
    assert (columns["metrics.count"] * columns["metrics.min"] <= columns["metrics.sum"]).all()
    assert int(own.sum()) <= tables.meta["wall_ns"] * max(len(columns["threads.tid"]), 1)


def test_the_report_says_what_the_tables_hold(recorded: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "leadline", "report", str(recorded), "--format", "json"],
        check=True, timeout=60, capture_output=True, text=True,
    )  # fmt: skip
    found, tables = json.loads(done.stdout), Tables(recorded)
    assert found["totals"]["time"]["sum"] == int(tables.exclusive(MetricKind.TIME).sum())
    counts: dict[str, int] = {}
    parent = tables.columns["nodes.parent"]
    rows = np.flatnonzero(tables.columns["metrics.metric"] == MetricKind.CALL_TIME)
    for row in rows.tolist():
        node = int(tables.columns["metrics.node"][row])
        name = tables.name(node)
        if name != tables.name(int(parent[node])):  # an operator that calls itself counts once
            counts[name] = counts.get(name, 0) + int(tables.columns["metrics.count"][row])
    assert {row["name"]: row["count"] for row in found["operators"]} == {
        row["name"]: counts[row["name"]] for row in found["operators"]
    }


def test_the_table_of_steps_agrees_with_the_tree_and_the_window(recorded: Path) -> None:
    """Every step once, in rows of consecutive ones, in the histogram, and at the thread's step in the tree; each
    column no more than its whole."""
    tables = Tables(recorded)
    columns, spans, slow = tables.columns, tables.steps(0), tables.steps(1)
    count, wall = sum(one["count"] for one in spans), sum(one["wall_ns"] for one in spans)
    assert count == 4, "when the first of five began nobody knows"
    assert count == int(columns["step_walls.count"].sum())
    begins = [(16 + bin % 16) << (bin // 16) for bin in columns["step_walls.bin"].tolist()]
    ends = [(16 + (bin + 1) % 16) << ((bin + 1) // 16) for bin in columns["step_walls.bin"].tolist()]
    walls = sorted(one["wall_ns"] for one in slow)
    every = np.repeat(np.arange(len(begins)), columns["step_walls.count"].astype(int)).tolist()
    assert all(begins[at] <= one < ends[at] for at, one in zip(every, walls, strict=True))
    steps = [row for row in range(columns["nodes.parent"].size) if tables.name(row) == "step"]
    assert tables.exclusive(MetricKind.CALL_TIME)[steps].sum() == wall
    for one in (*spans, *slow):
        assert one["wall_min_ns"] <= one["wall_ns"] <= one["count"] * one["wall_max_ns"]
        assert one["counted"] == one["count"]
        assert 0 < one["running_ns"] <= one["wall_ns"]
        assert 0 <= one["core_wait_ns"] <= one["wall_ns"]
        assert 0 < one["operator_ns"] <= one["wall_ns"]
        assert 0 < one["backward_ns"] < one["operator_ns"]
        phases = sum(one[name] for name in one if name.endswith("_ns") and name.split("_")[0] in PHASES)
        assert 0 < one["optimizer_ns"] <= phases <= one["wall_ns"]
    events = [
        int(columns["events.duration_ns"][row])
        for row in np.flatnonzero(columns["events.kind"] == EventKind.STEP).tolist()
    ]
    assert sorted(events) == sorted(walls)[: len(events)] or set(events) <= set(walls)


def test_files_without_a_table_of_steps_say_the_same(recorded: Path) -> None:
    """Files of releases before it: mean and number from the thread's step in the tree."""
    profile = leadline.open(recorded)
    steps = steps_of(profile)
    older = {name: empty_columns(name) for name in ("steps", "step_walls", "main_threads")}
    before = steps_of(Profile(Tables_({**profile.tables.columns, **older}), profile.meta))
    assert isinstance(steps, Steps) and isinstance(before, Steps)
    assert steps.main.recorded is not None and before.main.recorded is None
    assert (steps.number, steps.timed_by, steps.main.thread) == (before.number, before.timed_by, before.main.thread)
    if not steps.warm_up:
        assert steps.mean_ns == pytest.approx(before.mean_ns)
        assert steps.main.deviation_ns == pytest.approx(before.main.deviation_ns, rel=1e-6)
        assert steps.main.running_ns == pytest.approx(before.main.running_ns)
