"""The page's own tables say what Python's report says of the same file."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

import leadline
from leadline.profiles.builder import ProfileBuilder
from leadline.report import ReportOptions, build_report
from leadline.report.embedded import packed
from leadline.report.json_report import report_object

UI = Path(__file__).parents[2] / "ui"
sys.path.insert(0, str(UI.parent / "tests" / "report"))
from drawings import hostile, training  # noqa: E402

PROGRAM = """
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU()) for _ in range(3)))
optimizer = torch.optim.Adam(net.parameters())
for _ in range(4):
    net(torch.randn(8, 32)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.fixture(scope="module")
def printer(tmp_path_factory):
    if not (UI / "node_modules").exists():
        pytest.skip("Running the page's model needs `npm ci` in ui.")
    folder = tmp_path_factory.mktemp("printer")
    entry = folder / "entry.ts"
    module = json.dumps(str(UI / "model/testing/print.ts"))
    entry.write_text(
        f'import {{ readFileSync }} from "node:fs"; import {{ print }} from {module}; print(readFileSync);'
    )
    command = [
        UI / "node_modules/.bin/esbuild",
        entry,
        "--bundle",
        "--platform=node",
        f"--outfile={folder / 'print.js'}",
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)

    def printed(path):
        done = subprocess.run(
            ["node", folder / "print.js", path], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return printed


def real(folder):
    pytest.importorskip("torch", reason="a real program needs torch")
    (folder / "train.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "leadline.cli.main", "run", "-o", "real.leadline", "train.py"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=200)
    return leadline.open(folder / "real.leadline")


def scheduled(seed):
    """A profile with what the kernel did with its three threads, drawn by lot."""
    draw = random.Random(seed)
    builder = ProfileBuilder()
    process = builder.process("train.py", pid=100, start_ns=1)
    own = [100, 101, 102]
    for tid in own:
        builder.thread(process, f"thread-{tid}", tid=tid)
    others = [0, 900, 901]
    time = 950
    for _ in range(120):
        time += draw.randrange(1, 12)
        kind = draw.choice(
            ["switch"] * 6 + ["waking"] * 4 + ["syscall_entry", "syscall_exit", "switch_out", "switch_in", "fork"]
        )
        tid, target = draw.choice(own + others), draw.choice(own + others)
        value = draw.choice([0, 1, 2]) if kind == "switch" else draw.choice([0, 1])
        name = draw.choice(["futex", "poll", "read"]) if kind.startswith("syscall") else f"task-{target}"
        builder.kernel_event(kind, time, name, tid=tid, target=target, value=value, cpu=0)
    profile = builder.profile()
    profile.meta["kernel"] = {"source": "tracefs", "level": "syscalls", "from_ns": 1_000, "until_ns": 1_500}
    return profile


def test_states_of_threads_agree(printer, tmp_path):
    for seed in range(8):
        profile = scheduled(seed)
        path = tmp_path / "states.bin"
        path.write_bytes(packed(profile.tables, profile.meta))
        states = profile.window.states
        names = ("tid", "start_ns", "duration_ns", "state", "reason", "other_name")
        wanted = [list(row) for row in zip(*(states[name].tolist() for name in names), strict=True)]
        assert sorted(printer(path)["states"]) == sorted(wanted), seed


def rounded(value):
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return round(value, 6) if isinstance(value, float) else value


@pytest.mark.parametrize(
    "make", [lambda folder: training(), lambda folder: hostile(), real], ids=["training", "hostile", "real"]
)
def test_tables_agree(make, printer, tmp_path):
    profile = make(tmp_path)
    path = tmp_path / "profile.bin"  # no name of a measured profile: these are drawn
    path.write_bytes(packed(profile.tables, profile.meta))
    said = printer(path)
    wanted = report_object(
        build_report(profile, ReportOptions(top=10_000, frames=False, merge_layers=False), str(path))
    )
    assert {row["name"]: rounded(row) for row in said["operators"]} == {
        row["name"]: rounded(row) for row in wanted["operators"]
    }
    for row in said["modules"]:
        row.pop("nodes")
    assert {row["name"]: row for row in said["modules"]} == {row["name"]: row for row in wanted["modules"]}
    kernels = wanted["gpu"]["kernels"] if wanted["gpu"] else []
    assert {row["name"]: rounded(row) for row in said["kernels"]} == {row["name"]: rounded(row) for row in kernels}
    assert {name: total["sum"] for name, total in said["totals"].items()} == {
        name: total["sum"] for name, total in wanted["totals"].items()
    }
    metric = wanted["path_metric"]

    def place(path):
        return [(path["place"] or {}).get(key) for key in ("short", "line", "function")]

    keys = ("module", "modules", "phase", "operator", "calls", "paths")
    for mine, theirs in zip(said["paths"], wanted["paths"][:200], strict=True):
        assert place(mine) == place(theirs)
        assert mine["values"][metric] == theirs["values"][metric]
        if mine["values"][metric] not in [one["values"][metric] for one in wanted["paths"] if one is not theirs]:
            assert [mine[key] for key in keys] == [theirs[key] for key in keys]
    for key in ("program", "wall_ns", "started_at", "host", "processes", "threads", "complete"):
        assert said["meta"][key] == wanted["meta"][key]
