"""A real profile with a trace window, a second one from after a change, and a browser to look at them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

JS = Path(__file__).parents[1] / "js"
PROGRAM = """
import torch
torch.manual_seed(0)
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)
    def forward(self, x):
        return torch.relu(self.linear(x))
net = torch.nn.Sequential(*(Block() for _ in range(SIZE)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def train_step(x):
    loss = net(x).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()
for _ in range(6):
    train_step(torch.randn(16, 64))
"""


@pytest.fixture(scope="session")
def profiles(tmp_path_factory):
    """(folder, before, after): files that hold three steps each; the second network has a layer more."""
    pytest.importorskip("torch", reason="a real program needs torch")
    folder = tmp_path_factory.mktemp("profiles")
    for name, size in (("before", "2"), ("after", "3")):
        (folder / "train.py").write_text(PROGRAM.replace("SIZE", size))
        command = [
            sys.executable,
            "-m",
            "leadline.cli.main",
            "run",
            "--trace",
            "steps=3",
            "-o",
            f"{name}.leadline",
            "train.py",
        ]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=200)
    return folder, folder / "before.leadline", folder / "after.leadline"


@pytest.fixture(scope="session")
def browse():
    """browse(script, argument): what a script of tests/js saw."""
    chromium = shutil.which("chromium")
    if chromium is None or not (JS / "node_modules").exists():
        pytest.skip("Opening the page needs the program chromium and `npm ci` in tests/js.")

    def seen(script, *arguments):
        done = subprocess.run(
            ["node", script, *map(str, arguments)], cwd=JS, env={**os.environ, "CHROMIUM": chromium},
            capture_output=True, text=True, timeout=280, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return seen
