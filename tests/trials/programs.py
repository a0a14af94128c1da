"""Programs with steps of a known length, and how to run the command on them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

STEPS = """
import sys, time
import leadline
import pace

for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 60):
    time.sleep(pace.SECONDS)
    leadline.step()
"""
HALF = """
from leadline.remedies import Remedy

class Half(Remedy):
    name = "half"
    changes = "halves the pace"

    def start(self, trial):
        trial.when_imported("pace", self.set)

    def set(self, pace):
        pace.SECONDS /= 2

class Nothing(Remedy):
    name = "nothing"
    changes = "changes nothing, and knows it"

    def outcome(self, trial):
        return "there is nothing here for it"

class Broken(Remedy):
    name = "broken"
    changes = "ends the program"

    def start(self, trial):
        trial.when_imported("pace", self.end)

    def end(self, pace):
        pace.SECONDS = "no number"
"""


def write_program(folder: Path, text: str = STEPS) -> Path:
    (folder / "pace.py").write_text("SECONDS = 0.008\n")
    (folder / "train.py").write_text(text)
    (folder / "mine.py").write_text(HALF)
    return folder


def leadline(*words: str, cwd: Path, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    done = subprocess.run(
        [sys.executable, "-m", "leadline", *words],
        cwd=cwd,
        env={**environment, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    if code is not None:
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def tried(*words: str, cwd: Path) -> dict[str, Any]:
    """The JSON of `leadline try`."""
    done = leadline("try", "--no-predict", "--steps", "12", "--warm-up", "2", "--format", "json", *words, cwd=cwd)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def write_profile(path: Path) -> None:
    """Of a program that trains with a loop over parameters, so that something is found."""
    (path.parent / "loop.py").write_text(LOOP)
    leadline("run", "-q", "-o", str(path), "loop.py", cwd=path.parent)


LOOP = """
import time
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(30)])
optimizer = torch.optim.Adam(model.parameters(), foreach=False)
for _ in range(30):
    optimizer.zero_grad()
    model(torch.randn(4, 16)).sum().backward()
    optimizer.step()
    time.sleep(0.001)
"""
