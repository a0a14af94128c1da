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
from leadline.schema import MetricKind

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
