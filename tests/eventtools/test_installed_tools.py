"""Tools that somebody has installed (entry point `leadline.tools`), and tools in C, in real runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.eventtools.conftest import Runner
from tests.eventtools.test_c_tools import ROOT, built

from leadline.cli.main import main

pytest.importorskip("torch", reason="these tests measure real PyTorch; install torch==2.13.0 to run them")

PACKAGE = """
from leadline.tools import Tool, option

class Largest(Tool):
    "The most operators of a name."
    tool_name = "largest"
    events = {"launch": ["kernel"]}
    least = option(int, "1", "of a row")
    def start(self): self.n = self.counter()
    def launch(self, b): self.n.add(b["kernel"])
    def finish(self, out): out.table("kernels", [{"name": self.names[k], "count": c} for k, c in self.n.counts.items() if c >= self.least])

class NoTool:
    pass
"""
PROGRAM = """
import torch
x = torch.ones(8)
for i in range(50):
    x.add(1)
x.mul(2)
"""


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment in which a distribution with three entry points is on the path."""
    site = tmp_path / "site"
    info = site / "their_tools-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "their_tools.py").write_text(PACKAGE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-tools\nVersion: 1.0\n")
    entries = ("largest = their_tools:Largest", "wrong = their_tools:NoTool", "broken = their_missing:X")
    (info / "entry_points.txt").write_text("\n".join(["[leadline.tools]", *entries, ""]))
    return {"PYTHONPATH": str(site)}


def test_a_tool_of_an_installed_distribution_runs_by_its_name(installed: dict[str, str], tmp_path: Path) -> None:
    ran = Runner(tmp_path)(PROGRAM, "--tool", "largest", "--tool-option", "largest.least=2", env=installed)
    assert ran.code == 0, ran.err
    assert {row["name"]: row["count"] for row in ran.table("largest")} == {"aten::add": 50}
    assert ran.found("largest")["options"] == {"least": 2}


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("wrong", "The entry point their_tools:NoTool is no leadline.tools.Tool class."),
        ("broken", "The tool broken of their_missing:X cannot be loaded: ModuleNotFoundError"),
        ("larges", "There is no tool 'larges'; there are kernel_frequency"),
    ],
)
def test_an_entry_point_that_is_no_tool_is_refused(
    installed: dict[str, str], tmp_path: Path, name: str, sentence: str
) -> None:
    ran = Runner(tmp_path)(PROGRAM, "--tool", name, env=installed)
    assert ran.code == 2
    assert sentence in ran.err


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")
def test_the_c_example_counts_a_real_program(tmp_path: Path) -> None:
    library = built(ROOT / "examples/tools_in_c/kernels.c", tmp_path, "-std=c11")
    ran = Runner(tmp_path)(PROGRAM, "--tool", str(library), "--tool-option", "kernels.least=2")
    assert ran.code == 0, ran.err
    (table,) = [one for one in ran.found("kernels")["outputs"] if one["kind"] == "table"]
    assert table["rows"] == [["aten::add", 50]]
    assert "Every launch was counted." in ran.err


MEMORY = """
import torch
class Keep(torch.nn.Module):
    def forward(self, x): return torch.zeros(1 << 18)
class Twice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.keep = Keep()
    def forward(self, x):
        a = self.keep(x)  # 1 MiB
        b = torch.zeros(1 << 19)  # 2 MiB
        del a
        return b
net = Twice()
for step in range(3):
    net(None)
"""


def test_memory_over_time_by_layer(tmp_path: Path) -> None:
    ran = Runner(tmp_path)(MEMORY, "--tool", "memory_timeline")
    assert ran.code == 0, ran.err
    outputs = {one["name"]: one for one in ran.found("memory_timeline")["outputs"]}
    (table,) = [one for one in outputs.values() if one["kind"] == "table"]
    assert table["name"].startswith("alive at the peak on the CPU: 3 MiB")
    assert {row[0]: row[1] for row in table["rows"]} == {"net.keep (forward)": 1 << 20, "net (forward)": 2 << 20}
    curve = outputs["tensor memory on the CPU"]["series"]
    assert max(curve["all"]) == 3 << 20 and max(curve["net.keep (forward)"]) == 1 << 20
    assert curve["all"].count(3 << 20) == 3


def test_a_backend_that_saw_nothing_says_why(tmp_path: Path) -> None:
    ran = Runner(tmp_path)(PROGRAM, "--tool", "working_set", "--tool", "hotness", "--backend", "inductor-cpu")
    assert ran.code == 0, ran.err
    told = " ".join(ran.err.split())
    assert told.count("It saw no events: no kernel that torch.compile makes for the CPU ran;") == 2
    assert "operators of eager code and of libraries are seen with --backend declared." in told
    assert "no rows" not in told
    folder = tmp_path / "range"
    folder.mkdir()
    ran = Runner(folder)(PROGRAM, "--tool", "kernel_frequency", "--launch-range", "1000:2000")
    assert "It saw no events: 52 launches were left out, because only launches 1,000 to 1,999 were selected." in (
        " ".join(ran.err.split())
    )


def test_a_plan_for_ample_memory_says_that_all_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = Runner(tmp_path)(PROGRAM, "--tool", "record", "--backend", "declared")
    assert recorded.code == 0, recorded.err
    events, plan = str(tmp_path / "events.npz"), str(tmp_path / "p.json")
    assert main(["uvm", "plan", events, "--memory", "24GB", "-o", plan]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "with 24000.0 MB, in which all of it fits," in shown
    assert "times too small" not in shown
