"""Programs that are ended the hard way: what they leave behind, and that they end."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import leadline

FORKS = """
import os, sys, time
import leadline
begin = last = time.monotonic()
print("on", flush=True)
while time.monotonic() - begin < 3.0:
    with leadline.region("step"):
        time.sleep(0.001)
    if time.monotonic() - last > 0.2:
        last = time.monotonic()
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
os.kill(os.getpid(), 9)
"""

WRITES = """
import os, time, leadline
leadline.start("p.leadline", quiet=True, flush_interval_s=0.5)
print("on", flush=True)
while True:
    time.sleep(0.01)
"""


def test_a_program_that_forks_all_the_time_leaves_its_segments(tmp_path: Path):
    (tmp_path / "program.py").write_text(FORKS)
    command = [sys.executable, "-m", "leadline", "run", "-q", "--flush-interval", "1", "-o", "p.leadline", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL or done.returncode == 128 + signal.SIGKILL, done.stderr
    tree = leadline.open(tmp_path / "p.leadline").tree
    steps = max(
        (int(tree.exclusive("call_time").count[one.row]) for one in tree.walk() if one.name == "step"), default=0
    )
    assert steps > 50, "no more than one interval is missing"


def hanging(folder: Path) -> subprocess.Popen[str]:
    """A program whose next segment cannot be written: a FIFO that nobody reads is in its place."""
    (folder / "program.py").write_text(WRITES)
    program = subprocess.Popen([sys.executable, "program.py"], cwd=folder, stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None and program.stdout.readline() == "on\n"
    until = time.monotonic() + 30
    while time.monotonic() < until:
        for segment in folder.glob("**/*.segment"):
            try:
                os.mkfifo(f"{segment}.tmp")
            except FileExistsError:
                continue
            time.sleep(1.0)  # the writer opens it within its interval
            return program
        time.sleep(0.01)
    program.kill()
    raise AssertionError("no segment came")


def test_a_second_signal_ends_a_program_whose_segment_hangs(tmp_path: Path):
    program = hanging(tmp_path)
    program.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    program.send_signal(signal.SIGTERM)
    assert program.wait(3) == -signal.SIGTERM


def test_one_signal_ends_it_within_the_limit(tmp_path: Path):
    program = hanging(tmp_path)
    program.send_signal(signal.SIGTERM)
    assert program.wait(20) == -signal.SIGTERM


@pytest.mark.parametrize("files", [5, 6, 12])
def test_a_program_that_may_open_few_files_runs(files: int, tmp_path: Path):
    """Python itself needs five."""
    (tmp_path / "program.py").write_text("print('ran'); raise SystemExit(7)")
    command = [sys.executable, "-m", "leadline", "run", "-q", "-o", "p.leadline", "program.py"]

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, preexec_fn=few)
    assert (done.returncode, done.stdout) == (7, "ran\n")
    assert "Traceback" not in done.stderr and done.stderr.count("\n") <= 1
