"""Recorded programs: what every verb, mcp and the page say of one file is equal, and is what a second reader of the
tables finds; no figure is beyond what is physically possible."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.agree import said
from tests.agree.tables import Tables

from leadline.agent import answers
from leadline.cli.main import main
from leadline.names import bare
from leadline.opening import open_any
from leadline.report import ReportOptions, build_report
from leadline.report.json_report import report_object
from leadline.schema import EventKind, FrameKind, MetricKind

TRAIN = """
import torch
model = {model}
optimizer = {optimizer}
for step in range({steps}):
{body}
"""
STEP = "    optimizer.zero_grad(); {forward}.sum().backward(); optimizer.step()"
MLP = "torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))"
SGD, ADAM = "torch.optim.SGD(model.parameters(), 0.1)", "torch.optim.Adam(model.parameters())"


def train(model: str = MLP, optimizer: str = SGD, steps: int = 12, forward: str = "model(torch.ones(16, 64))") -> str:
    return TRAIN.format(model=model, optimizer=optimizer, steps=steps, body=STEP.format(forward=forward))


PROGRAMS = {
    "mlp": (train(), 12),
    "adam": (train(optimizer=ADAM, steps=25), 25),
    "lstm": (train("torch.nn.LSTM(8, 8)", forward="model(torch.ones(5, 2, 8))[0]"), 12),
    "attention": (train("torch.nn.MultiheadAttention(16, 2)", forward="model(*[torch.ones(4, 2, 16)] * 3)[0]"), 12),
    "convolution": (train("torch.nn.Conv2d(3, 4, 3)", forward="model(torch.ones(2, 3, 16, 16))"), 12),
    "embedding": (train("torch.nn.EmbeddingBag(100, 8)", forward="model(torch.ones(4, 5).long())"), 12),
    "loader": (
        "import torch\nmodel = torch.nn.Linear(4, 4)\noptimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "for batch in torch.utils.data.DataLoader(torch.ones(60, 4), batch_size=5):\n"
        + STEP.format(forward="model(batch)"),
        12,
    ),
    "accumulation": (
        "import torch\nmodel = torch.nn.Linear(4, 4)\noptimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "for step in range(10):\n    for part in range(3): model(torch.ones(2, 4)).sum().backward()\n"
        "    optimizer.step(); optimizer.zero_grad()\n",
        10,
    ),
    "four optimizers": (
        "import torch\np = [torch.nn.Parameter(torch.ones(3)) for _ in range(4)]\n"
        "optimizers = [torch.optim.Adam([q], 0.1) for q in p]\nfor step in range(30):\n"
        "    sum((q * q).sum() for q in p).backward()\n    for one in optimizers: one.step()\n"
        "    for one in optimizers: one.zero_grad()\n",
        30,
    ),
    "two optimizers, two gradients": (
        "import torch\na, b = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)\n"
        "one, two = (torch.optim.SGD(m.parameters(), 0.1) for m in (a, b))\nfor step in range(20):\n"
        "    one.zero_grad(); a(torch.ones(2, 4)).sum().backward(); one.step()\n"
        "    two.zero_grad(); b(torch.ones(2, 4)).sum().backward(); two.step()\n",
        20,
    ),
    "inference": (
        f"import torch\nmodel = {MLP}\nwith torch.no_grad():\n    for step in range(15): model(torch.ones(4, 64))\n",
        15,
    ),
    "told": (
        "import torch, leadline\nmodel = torch.nn.Linear(8, 8)\nfor step in range(14):\n"
        "    model(torch.ones(2, 8)); model(torch.ones(2, 8))\n    leadline.step()\n",
        14,
    ),
}
QUICK = ("mlp", "four optimizers", "two optimizers, two gradients")
FOREIGN = Path(__file__).parents[1] / "foreign" / "programs"
OTHERS = [
    f"{name} {mode}"
    for name in (
        "bert",
        "clip",
        "language",
        "mixtral",
        "t5",
        "trainer",
        "vit",
        "whisper",
        "module_of_lightning",
        "engine",
    )
    for mode in ("train", "infer")
]
"""Of other people's models, by the file in tests/foreign/programs; how many steps they take is for them to know."""


@pytest.fixture(
    scope="module",
    params=[name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in (*PROGRAMS, *OTHERS)],
)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int | None]:
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("recorded")
    if request.param in PROGRAMS:
        text, steps = PROGRAMS[request.param]
        (folder / "program.py").write_text(text, encoding="utf-8")
        words = ["program.py"]
    else:
        name, _, mode = request.param.partition(" ")
        words, steps = ["--trace", "steps=2", str(FOREIGN / f"{name}.py"), mode], None
        for module in re.findall(r"^(?:from|import) (\w+)", (FOREIGN / f"{name}.py").read_text("utf-8"), re.MULTILINE):
            pytest.importorskip(module, reason=f"{name} is a program of {module}, which is not installed here")
    command = [sys.executable, "-m", "leadline", "run", "-q", "-o", "out.leadline", *words]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(FOREIGN.parents[2])}
    subprocess.run(command, cwd=folder, check=True, timeout=240, capture_output=True, env=environment)
    return folder / "out.leadline", steps


@lru_cache(maxsize=64)
def told(path: Path, verb: str, *more: str) -> Any:
    output = path.with_suffix(f".{verb}.json")
    assert main([verb, str(path), *more, "-o", str(output), "--force"]) in (0, 1)
    return json.loads(output.read_text(encoding="utf-8"))


def test_steps(recorded: tuple[Path, int | None]) -> None:
    """The number of steps is the program's own; their length is equal wherever it is said."""
    path, steps = recorded
    report, analyzed = told(path, "report", "--format", "json"), told(path, "analyze", "--format", "json")
    told_of_training = told(path, "summary", "--json")
    summary = told_of_training["steps"]
    shown = report["steps"]
    if shown is None:  # one call of generate(): nothing repeats, wherever it is said
        assert steps is None and analyzed["steps"] == 0 and not analyzed["step_ns"] and not summary.get("count")
        assert not [name for name in told_of_training["figures"] if "step" in name]
        return
    assert shown["number"] == analyzed["steps"] == summary["count"]
    assert steps is None or shown["number"] == steps
    if shown["mean_ns"]:
        assert analyzed["step_ns"] == pytest.approx(shown["mean_ns"], abs=1)
        assert summary["mean_ns"] == pytest.approx(shown["mean_ns"], abs=1)
        if shown["median_ns"]:
            assert shown["min_ns"] <= shown["median_ns"] * 1.04 and shown["median_ns"] <= shown["max_ns"] * 1.04
    account = report["verdict"] and report["verdict"].get("account")
    if account and account["of"] == "step":
        assert account["steps"] == shown["number"]
        assert account["wall_ns"] == pytest.approx(analyzed["step_ns"], abs=1)


def test_operators(recorded: tuple[Path, int | None]) -> None:
    """Calls and time of operators: the report, a query, mcp and the tables."""
    path, _ = recorded
    tables, report = Tables(path), told(path, "report", "--format", "json")
    time = tables.exclusive(MetricKind.TIME)
    for row in [one for one in report["operators"] if one["name"].startswith("aten::")][:4]:
        asked = told(path, "query", f"operator:{row['name']} top 100000", "--format", "json")
        assert sum(one["self"] for one in asked["rows"]) == row["time_ns"]["self"], row["name"]
        named = [node for node in range(time.size) if tables.name(node) == row["name"]]
        assert int(time[named].sum()) == row["time_ns"]["self"], row["name"]
    said = answers.summary(str(path))
    assert bare(report["operators"][0]["name"]) in said


def test_mcp_and_the_page_hold_the_same_object(recorded: tuple[Path, int | None]) -> None:
    path, _ = recorded
    report = told(path, "report", "--format", "json")
    profile = open_any(path)
    built = build_report(profile, ReportOptions(verdict=True), path.name)
    ours = json.loads(json.dumps(report_object(built)))
    for name in ("steps", "time_split", "totals", "phases", "losses", "verdict"):
        assert ours[name] == report[name], name
    assert ours["operators"] == report["operators"][: len(ours["operators"])]
    why = json.loads(answers.why(str(path))) if answers.why(str(path)).startswith("{") else None
    if why is not None and "account" in why:
        assert why["account"] == report["verdict"]["account"]


def test_physical_bounds(recorded: tuple[Path, int | None]) -> None:
    """No thread ran longer than it was there, nothing lasts longer than the run, no share is above one."""
    path, _ = recorded
    tables, report = Tables(path), told(path, "report", "--format", "json")
    columns, wall = tables.columns, tables.meta["wall_ns"]
    assert (columns["threads.cpu_ns"] <= columns["threads.wall_ns"]).all()
    assert (columns["threads.operator_ns"] <= columns["threads.wall_ns"]).all()
    assert (columns["threads.wall_ns"] <= wall).all()
    for one in tables.steps(0):
        assert one["running_ns"] + one["core_wait_ns"] <= one["wall_ns"]
        assert one["operator_ns"] <= one["wall_ns"] and one["data_ns"] + one["optimizer_ns"] <= one["wall_ns"]
    assert sum(one["wall_ns"] for one in tables.steps(0)) <= wall
    for split in report["time_split"]:
        parts = [value for name, value in split.items() if re.fullmatch(r"[a-z_]+_ns", name) and name != "wall_ns"]
        assert sum(filter(None, parts)) - (split["device_wait_running_ns"] or 0) <= split["wall_ns"] * 1.0001
    own = tables.exclusive(MetricKind.TIME)
    assert int(own.sum()) <= wall * max(len(columns["threads.tid"]), 1)
    assert np.all(columns["metrics.sum"][columns["metrics.metric"] == MetricKind.PEAK_LIVE_BYTES] < 1 << 40)
    account = report["verdict"]["account"] if report["verdict"] else None
    for part in account["parts"] if account else ():
        assert 0 <= part["share"] <= 1.0001


def test_a_file_is_not_different_from_itself(recorded: tuple[Path, int | None]) -> None:
    path, _ = recorded
    found = told(path, "diff", "--", str(path), "--format", "json")
    assert found["changes"] == found["differences"] == found["renamed"] == found["moved"] == []
    for name in ("step", "work", "gpu"):
        assert found[name] is None or found[name]["a"] == found[name]["b"]


def test_no_gain_is_more_than_the_step(recorded: tuple[Path, int | None]) -> None:
    path, _ = recorded
    for finding in told(path, "analyze", "--format", "json")["findings"]:
        gain = finding["gain"]
        if gain and gain.get("per") == "step":
            assert 0 <= gain["low_ns"] <= gain["expected_ns"] <= gain["high_ns"] <= gain["of_ns"]


def test_statistics_of_the_window_are_the_events(recorded: tuple[Path, int | None]) -> None:
    """Where a window was traced: occurrences and time of operators, and no more calls than in the whole run."""
    path, _ = recorded
    profile = open_any(path)
    events = said.of_events(profile, EventKind.OPERATOR)
    if not events.count:
        return
    output = path.with_suffix(".stats.csv")
    assert main(["stats", str(path), "--by", "operator", "--top", "100000", "-o", str(output), "--force"]) == 0
    rows = list(csv.DictReader(output.read_text(encoding="utf-8").splitlines()))
    assert {row["operator"]: int(row["occurrences"]) for row in rows} == dict(events.count)
    assert {row["operator"]: int(row["total_ns"]) for row in rows} == dict(events.total)
    calls = said.of_tree(profile, FrameKind.OPERATOR).count
    assert all(number <= calls[name] for name, number in events.count.items())
