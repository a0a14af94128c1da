"""A folder in which commands of the docs run: small programs and profiles with the names that pages use."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.distributed.simulated import write_ranks

PLAIN = """
import sys, time
import leadline

def load():
    return [(number * 7919) % 1009 for number in range(4000)]

def train_step(batch):
    return sum(one * one for one in sorted(batch))

for step in range(40):
    with leadline.region("load"):
        batch = load()
    train_step(batch)
    leadline.step()
"""
TORCH = """
import sys
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

def train():
    for _ in range(12):
        loss = model(torch.randn(32, 64)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

train()
"""
TRACED = TORCH.replace(
    "\ntrain()\n",
    """
with torch.profiler.profile(record_shapes=True, with_stack=True) as found:
    train()
found.export_chrome_trace(sys.argv[1])
""",
)
PROGRAMS = ("train.py", "before.py", "after.py", "serve.py", "server.py", "mypy.py")
PROFILES = ("train", "run", "before", "after", "out", "serve", "server", "demo", "timing", "memory")


def leadline(*words: str, cwd: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "leadline.cli.main", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def stand_ins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """See the file's first line. Programs do without torch; torch_train.py is the one that a page may need."""
    pytest.importorskip("torch", reason="profiles with operators need torch")
    folder = tmp_path_factory.mktemp("docs")
    (folder / "torch_train.py").write_text(TORCH)
    for name in PROGRAMS:
        (folder / name).write_text(PLAIN)
    (folder / "src").mkdir()
    leadline("run", "--shapes", "--trace", "steps=3", "-o", "train.leadline", "torch_train.py", cwd=folder)
    leadline("run", "-o", "after.leadline", "torch_train.py", cwd=folder)
    for name in PROFILES:
        if not (folder / f"{name}.leadline").exists():
            shutil.copy(folder / "train.leadline", folder / f"{name}.leadline")
    for number in "123":
        shutil.copy(folder / "train.leadline", folder / f"a{number}.leadline")
        shutil.copy(folder / "after.leadline", folder / f"b{number}.leadline")
    (folder / "baseline").mkdir()
    shutil.copy(folder / "train.leadline", folder / "baseline" / "main.leadline")
    (folder / "profiles").mkdir()
    write_ranks(folder / "profiles")
    leadline("merge", "profiles", "-o", "job.leadline", cwd=folder)
    (folder / "traced.py").write_text(TRACED)
    subprocess.run(
        [sys.executable, "traced.py", "trace.json"], cwd=folder, check=True, capture_output=True, timeout=120
    )
    trace = json.loads((folder / "trace.json").read_text())
    for name, more in (("trace", {}), *((f"rank{rank}", {"rank": rank, "world_size": 2}) for rank in range(2))):
        told = {**trace, **({"distributedInfo": more} if more else {})}
        (folder / f"{name}.json.gz").write_bytes(gzip.compress(json.dumps(told).encode(), 1))
    return folder
