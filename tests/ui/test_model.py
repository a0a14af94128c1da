"""What the page's model says of real files is what Python says of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import leadline
from leadline.compare.align import align
from leadline.trace.dataflow import edges

UI = Path(__file__).parents[2] / "ui"
PROGRAM = """
import torch
def first(x):
    return torch.relu(x) + torch.sigmoid(x)
def second(x):
    return first(x).exp()
def fast(x):
    return x.cos().sin()
net = torch.nn.Linear(8, 8)
for _ in range(3):
    second(net(torch.randn(4, 8))).sum().backward()
    fast(torch.ones(3))
"""


@pytest.fixture(scope="module", autouse=True)
def tools():
    if not (UI / "node_modules").exists():
        pytest.skip("Bundling the model needs `npm ci` in ui.")


def test_edges_of_backward_passes(profiles, browse):
    _, before, _ = profiles
    found = edges(leadline.open(before))
    expected = sorted(zip(found.source.tolist(), found.target.tolist(), strict=True))
    assert len(expected) >= 3 * 5
    assert sorted(map(tuple, browse("model.mjs", "edges", before))) == expected


@pytest.fixture(scope="module")
def renamed(tmp_path_factory):
    """(before, after): another folder, moved lines, two functions with other names, one that is gone and one that is new."""
    pytest.importorskip("torch", reason="a real program needs torch")
    files = []
    changed = PROGRAM.replace("first", "activation").replace("second", "head").replace("fast", "slow")
    changed = "import os\n" + changed.replace("x.cos().sin()", "x.tanh().log()")
    for place, text in (("before", PROGRAM), ("after", changed)):
        folder = tmp_path_factory.mktemp(place)
        (folder / "train.py").write_text(text)
        command = [sys.executable, "-m", "leadline", "run", "-q", "--no-cpu-sample", "-o", "run.leadline", "train.py"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=200)
        files.append(shutil.move(folder / "run.leadline", folder / f"{place}.leadline"))
    return files


def test_trees_are_aligned_alike(renamed, browse):
    before, after = (leadline.open(path) for path in renamed)
    ours = align([before, after], [False, True])
    seen = browse("model.mjs", "aligned", *renamed)
    names = {(ours.keys[ours.key_of[row]][1], key[1]) for row, key in ours.renamed.items()}
    assert names == {("first", "activation"), ("second", "head")}
    assert set(map(tuple, seen["renamed"])) == names
    pairs = {
        (one, other)
        for rows, theirs in zip(ours.row_of, seen["rows"], strict=True)
        for one, other in zip(rows.tolist(), theirs, strict=True)
    }
    assert len({one for one, _ in pairs}) == len({other for _, other in pairs}) == len(pairs), "the same partition"
