"""Measuring begun from outside, in programs that are busy, wait, sleep or refuse."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.capture.conftest import LEADLINE

import leadline
from leadline.attach.control import Control

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(
        platform.machine() != "x86_64" and sys.version_info < (3, 14), reason="ptrace is written for x86-64"
    ),
]

PROGRAM = """
import sys, threading, time

def spins():
    while True:
        sum(number * number for number in range(1000))

def worker():
    while True:
        spins_a_little()
        time.sleep(0.005)

def spins_a_little():
    sum(number * number for number in range(20_000))

mode = sys.argv[1]
print("ready", flush=True)
if mode == "busy":
    spins()
elif mode == "lock":
    thread = threading.Thread(target=worker, daemon=True)
    thread.start()
    thread.join()
elif mode == "asleep":
    threading.Thread(target=worker, daemon=True).start()
    time.sleep(600)
elif mode == "input":
    threading.Thread(target=worker, daemon=True).start()
    sys.stdin.readline()
    print("went on", flush=True)
elif mode == "own":
    import leadline
    leadline.start("own.leadline", quiet=True)
    spins()
"""


@contextlib.contextmanager
def running(folder: Path, mode: str) -> Iterator[subprocess.Popen[str]]:
    (folder / "program.py").write_text(PROGRAM)
    command = [sys.executable, "program.py", mode]
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def attach(pid: int, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LEADLINE, "attach", str(pid), *options], cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.parametrize(
    ("mode", "function"), [("busy", "spins"), ("lock", "spins_a_little"), ("asleep", "spins_a_little")]
)
def test_a_running_program_is_measured_and_goes_on(tmp_path: Path, mode: str, function: str) -> None:
    with running(tmp_path, mode) as process:
        result = attach(process.pid, tmp_path, "--seconds", "1", "-o", "seen.leadline")
        assert result.returncode == 0, result.stderr
        assert "measuring process" in result.stderr and "leadline report seen.leadline" in result.stderr
        profile = leadline.open(tmp_path / "seen.leadline")
        names = {node.name for node in profile.tree.walk() if profile.tree.inclusive("cpu_sample").sum[node.row]}
        assert function in names
        (measured,) = profile.processes
        assert measured.pid == process.pid and measured.complete
        assert process.poll() is None
        again = attach(process.pid, tmp_path, "--seconds", "0.3", "-q", "-o", "again.leadline")
        assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
        assert len(list(Path(f"/proc/{process.pid}/task").iterdir())) <= 2  # nothing of ours is left
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
        assert "leadline" not in said.lower(), said


def test_a_program_that_waits_for_input_gets_it_afterwards(tmp_path: Path) -> None:
    with running(tmp_path, "input") as process:
        assert attach(process.pid, tmp_path, "--seconds", "0.5", "-q").returncode == 0
        assert (tmp_path / f"pid-{process.pid}.leadline").is_file()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("x\n")
        process.stdin.flush()
        assert process.stdout.readline() == "went on\n"


def test_detach_ends_it_early_and_makes_the_file(tmp_path: Path) -> None:
    with running(tmp_path, "busy") as process:
        command = [*LEADLINE, "attach", str(process.pid), "--seconds", "600", "-q", "-o", "seen.leadline"]
        waiting = subprocess.Popen(command, cwd=tmp_path)
        control = Control(process.pid, 30.0)
        assert control.next()["state"] == "measuring"
        result = subprocess.run(
            [*LEADLINE, "detach", str(process.pid)], capture_output=True, text=True, timeout=60, check=False
        )
        control.close()
        assert result.returncode == 0 and "seen.leadline" in result.stderr
        assert waiting.wait(timeout=60) == 0
        assert len(leadline.open(tmp_path / "seen.leadline").tree) > 3
        again = subprocess.run(
            [*LEADLINE, "detach", str(process.pid)], capture_output=True, text=True, timeout=60, check=False
        )
        assert (again.returncode, again.stderr) == (
            2,
            f"leadline: Process {process.pid} was not attached to, so there is nothing to stop.\n",
        )


def test_what_cannot_be_attached_to_says_why(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    result = attach(gone.pid, tmp_path)
    assert (result.returncode, result.stderr) == (
        2,
        f"leadline: There is no process {gone.pid}; `pgrep -af python` lists running programs.\n",
    )
    other = subprocess.Popen(["sleep", "60"])
    try:
        result = attach(other.pid, tmp_path)
        assert (
            result.stderr
            == f"leadline: Process {other.pid} (sleep 60) runs no Python interpreter; `pgrep -af python` lists those that do.\n"
        )
    finally:
        other.kill()
        other.wait()
    result = attach(os.getpid(), tmp_path, "--seconds", "0")
    assert result.stderr == "leadline: The time to measure must be longer than zero, not 0 s; give --seconds 30s.\n"
    with running(tmp_path, "own") as process:
        deadline = time.monotonic() + 30
        while not list(tmp_path.glob("own.leadline*")) and time.monotonic() < deadline:
            time.sleep(0.02)
        result = attach(process.pid, tmp_path)
        assert result.returncode == 2
        assert result.stderr == (
            f"leadline: Process {process.pid} was not measured: It is measured already, "
            f"into {tmp_path / 'own.leadline'}.\n"
        )


def test_a_stopped_program_is_said_to_hang_and_is_left_alone(tmp_path: Path) -> None:
    with running(tmp_path, "busy") as process:
        process.send_signal(signal.SIGSTOP)
        result = attach(process.pid, tmp_path, "--seconds", "1")
        assert result.returncode == 2 and result.stderr.count("\n") == 1, result.stderr
        process.send_signal(signal.SIGCONT)
        time.sleep(0.2)
        assert process.poll() is None


def test_nobody_else_can_take_the_place_of_the_process(tmp_path: Path) -> None:
    with running(tmp_path, "asleep") as process:
        false = socket.socket(socket.AF_UNIX)
        false.bind(f"\0leadline-attach-{process.pid}")
        false.listen()
        result = subprocess.run(
            [*LEADLINE, "detach", str(process.pid)], capture_output=True, text=True, timeout=60, check=False
        )
        assert result.returncode == 2 and "was not attached to" in result.stderr
        false.close()
