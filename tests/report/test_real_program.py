"""A real PyTorch program, measured, written, read and reported: the report names the lines that did the work."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="a PyTorch program is measured and torch is not installed here")
pytest.importorskip("leadline._native", reason="measuring needs the native module; run `make build`")

pytestmark = pytest.mark.torch

PROGRAM = """
import torch

import leadline


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(512, 512)

    def forward(self, x):
        return torch.relu(self.linear(x))  # HEAVY


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.Sequential(Block(), Block(), Block())

    def forward(self, x):
        return self.blocks(x).sum()


def main():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.randn(256, 512)
    with leadline.profile("run.leadline"):
        for _ in range(5):
            optimizer.zero_grad()
            net(x).backward()
            optimizer.step()


main()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("real")
    (folder / "train.py").write_text(PROGRAM, encoding="utf-8")
    subprocess.run([sys.executable, "train.py"], cwd=folder, check=True, timeout=300)
    return folder


@pytest.fixture(scope="module")
def report(folder):
    command = [sys.executable, "-m", "leadline.cli.main", "report", "run.leadline", "--format", "json"]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=300)
    return json.loads(done.stdout)


def heavy_line():
    return next(number for number, line in enumerate(PROGRAM.splitlines(), 1) if "HEAVY" in line)


def test_the_heavy_line_comes_first_forward_and_backward(report):
    places = [(path["place"]["short"], path["place"]["line"], path["phase"]) for path in report["paths"][:6]]
    assert ("train.py", heavy_line(), "forward") in places
    assert ("train.py", heavy_line(), "backward") in places
    named = "Block.forward" if sys.version_info >= (3, 11) else "forward"  # code has its qualified name since 3.11
    assert report["paths"][0]["place"]["function"] == named


def test_its_modules_are_one_entry(report):
    linear = [path for path in report["paths"] if path["operator"] == "aten::linear" and path["phase"] == "forward"]
    assert [(path["module"], path["modules"], path["calls"]) for path in linear] == [("net.blocks.*.linear", 3, 15)]


def test_operators_are_counted(report):
    counts = {row["name"]: row["count"] for row in report["operators"]}
    assert counts["aten::linear"] == 15
    assert counts["aten::relu"] == 15


def test_the_parts_are_there(report):
    assert {row["name"] for row in report["phases"]} >= {"forward", "backward", "optimizer"}
    assert report["memory"]["peaks"][0]["device"] == "CPU"
    assert report["memory"]["peaks"][0]["peak_bytes"] > 256 * 512 * 4
    assert report["time_split"][0]["main"]
    assert report["meta"]["frameworks"][0].startswith("torch ")
    assert report["cost"]["percent"] is not None


def test_every_format_and_export_can_be_made(folder):
    for name in ("r.txt", "r.md", "r.html", "r.json"):
        done = subprocess.run(
            [sys.executable, "-m", "leadline.cli.main", "report", "run.leadline", "-o", name], cwd=folder, check=False
        )
        assert done.returncode == 0
        assert "train.py" in (folder / name).read_text(encoding="utf-8")
    for name in ("e.speedscope.json", "e.folded", "e.pb.gz", "e.cpuprofile", "e.hatchet.json"):
        done = subprocess.run(
            [sys.executable, "-m", "leadline.cli.main", "export", "run.leadline", "-o", name], cwd=folder, check=False
        )
        assert done.returncode == 0
        assert (folder / name).stat().st_size > 500
