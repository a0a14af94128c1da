"""Programs that a trial cannot take as they come: each is one sentence, and nothing of the user's is changed."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest
from tests.trials.programs import leadline, tried, write_program
from tests.trials.test_remedies import record


def test_a_server_that_the_program_leaves_behind_is_named_and_ended(tmp_path: Path) -> None:
    program = """
import leadline, subprocess, sys
subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()  # " + sys.argv[1]], start_new_session=True)
for _ in range(20): leadline.step()
"""
    write_program(tmp_path, program)
    mark = f"left-{os.getpid()}"
    words = ("--no-predict", "--steps", "8", "--warm-up", "2", "--rounds", "2", "--remedy", "mine.py:nothing")
    done = leadline("try", *words, "train.py", mark, cwd=tmp_path)
    before = done.stderr.partition("round 1")[0]
    assert "leaves a process running" in before
    for process in _running(mark):
        with contextlib.suppress(ProcessLookupError):
            select.select([os.pidfd_open(int(process))], [], [], 10)
    assert not _running(mark)


def _running(mark: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark in path.read_text() and "signal.pause()" in path.read_text():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


_TRAINED = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
CHANGE
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(30):
    optimizer.zero_grad()
    model(torch.randn(8, 32)TYPE).pow(2).mean().backward()
    optimizer.step()
"""


_ALREADY = [
    ("model.compile(backend='eager')", "", "compile", "the program is compiled already"),
    ("model = torch.compile(model, backend='eager')", "", "compile", "the program is compiled already"),
    ("model.bfloat16()", ".bfloat16()", "autocast", "in bfloat16 or under autocast already"),
    ("", "", "compile=reduce-overhead", "records CUDA graphs"),
    ("", "", "autocast=fp16", "autocast in bfloat16 runs here"),
]


def test_what_a_program_has_already_is_known_in_its_process(tmp_path: Path) -> None:
    """Two of them in one run; whole trials, of 12 to 18 s each, at night."""
    pytest.importorskip("torch")
    cases = (_ALREADY[1], _ALREADY[4])
    remedies = tuple((*fix.partition("=")[::2], "") for _, _, fix, _ in cases)
    found = record(tmp_path, _TRAINED.replace("CHANGE", _ALREADY[1][0]).replace("TYPE", ""), remedies)
    assert found["faults"] == []
    for _, _, fix, reason in cases:
        assert reason in found["outcomes"][fix]


@pytest.mark.slow
@pytest.mark.parametrize(("change", "kind", "fix", "reason"), _ALREADY)
def test_what_a_program_has_already_is_not_applied(
    tmp_path: Path, change: str, kind: str, fix: str, reason: str
) -> None:
    pytest.importorskip("torch")
    write_program(tmp_path, _TRAINED.replace("CHANGE", change).replace("TYPE", kind))
    found = tried("--fix", fix, "--rounds", "2", "train.py", cwd=tmp_path)
    row = found["rows"][1]
    assert row["verdict"] == "not applied"
    assert reason in row["sentence"]


@pytest.mark.slow
def test_a_pair_of_ranks_is_compared_by_its_slowest(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    program = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(30):
    optimizer.zero_grad()
    model(torch.randn(4, 16)).pow(2).mean().backward()
    optimizer.step()
dist.destroy_process_group()
"""
    write_program(tmp_path, program)
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    words = ("--fix", "gradient_as_bucket_view", "--rounds", "2", "--limit", "30s", "--", *launcher, "train.py")
    found = tried(*words, cwd=tmp_path)
    assert "2 ranks train" in " ".join(found["notes"])
    assert found["rows"][1]["equality"]["kind"] == "equal"


@pytest.mark.parametrize("catches", [False, True])
def test_a_scratch_disk_that_fills_up_is_a_sentence(tmp_path: Path, catches: bool) -> None:
    write = "    with open(f'big{number}', 'wb') as file: file.write(bytes(1 << 20))\n"
    if catches:
        write = f"    try:\n    {write}    except OSError: pass\n"
    program = f"import leadline\nfor number in range(20):\n{write}    leadline.step()\n"
    folder, disk = tmp_path / "program", tmp_path / "disk"
    folder.mkdir()
    disk.mkdir()
    write_program(folder, program)
    words = f"{sys.executable} -m leadline try --no-predict --steps 12 --warm-up 2 --remedy mine.py:nothing train.py"
    script = f"mount -t tmpfs -o size=3m none {disk} || exit 77; cd {folder}; TMPDIR={disk} exec {words}"
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
        env={name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("this system lets nobody mount a small disk")
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert "is full" in done.stderr
    assert "TMPDIR" in done.stderr
    assert {one.name for one in folder.iterdir()} - {"__pycache__"} == {"pace.py", "train.py", "mine.py"}
