"""What each thread of a running program does, against what the program was written to do."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.capture.conftest import LEADLINE

PROGRAM = """
import os, subprocess, sys, threading, time

lock = threading.Lock()
lock.acquire()
ends = os.pipe()

def held():
    with lock:
        pass

def reading():
    os.read(ends[0], 1)

def child():
    subprocess.run(["sleep", "600"])

def spinning():
    while True:
        sum(range(100))

async def inner():
    time.sleep(600)

def asleep(depth):
    if depth:
        return asleep(depth - 1)
    import asyncio
    asyncio.run(inner())

for work in (held, reading, child, *([spinning] * int(sys.argv[1]))):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.5)
print("ready", flush=True)
asleep(40)
"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    yield from _running(tmp_path, "0")


@pytest.fixture
def busy_program(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    yield from _running(tmp_path, "3")


def _running(folder: Path, argument: str, *before: str) -> Iterator[subprocess.Popen[str]]:
    (folder / "prógram.py").write_text(PROGRAM)
    command = [*before, sys.executable, "prógram.py", argument]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    try:
        yield process
    finally:
        # The program is in a process group of its own below a supervisor.
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for pid in (*map(int, children), process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def leadline(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*LEADLINE, *arguments], capture_output=True, text=True, timeout=60, check=False)


def look(pid: int) -> dict[str, dict]:
    """Threads by the function of the program that they are in."""
    result = leadline("dump", "--json", str(pid))
    assert (result.returncode, result.stderr) == (0, "")
    found = {}
    for thread in json.loads(result.stdout)["threads"]:
        own = [frame["name"] for frame in thread["frames"] if frame["file"].endswith("prógram.py")]
        found[own[0] if own else thread["name"]] = thread
    return found


def test_stacks_lines_and_what_is_waited_for(program: subprocess.Popen[str]) -> None:
    threads = look(program.pid)
    lines = PROGRAM.splitlines()
    assert {name: threads[name]["state"] for name in ("held", "reading", "inner")} == {
        "held": "waiting for a lock",
        "reading": "waiting for input",
        "inner": "asleep",
    }
    assert threads["child"]["state"] in ("waiting for a child", "waiting for input", "waiting for input or output")
    innermost = {
        name: next(f for f in thread["frames"] if f["name"] == name)
        for name, thread in threads.items()
        if name in ("held", "reading", "inner")
    }
    for name, text in (("held", "with lock:"), ("reading", "os.read"), ("inner", "time.sleep(600)")):
        assert text in lines[innermost[name]["line"] - 1], innermost[name]
    main = threads["inner"]
    assert main["main"] and main["tid"] == program.pid
    names = [frame["name"] for frame in main["frames"]]
    assert names[0] == "inner" and names.count("asleep") == 41 and names[-1] == "<module>"
    assert program.poll() is None


def test_threads_that_want_the_interpreter_are_told(busy_program: subprocess.Popen[str]) -> None:
    seen: set[str] = set()
    for _ in range(20):
        result = leadline("dump", str(busy_program.pid))
        assert result.returncode == 0, result.stderr
        seen.update(
            line.rsplit("  ", 1)[1].partition(",")[0]
            for line in result.stdout.splitlines()
            if line.startswith("thread") and "s of CPU" in line
        )
        if {"running", "waiting for the interpreter's lock (GIL)"} <= seen:
            break
    assert {"running", "waiting for the interpreter's lock (GIL)", "waiting for a lock"} <= seen
    assert busy_program.poll() is None


def test_a_measured_program_is_looked_at_too(tmp_path: Path) -> None:
    running = _running(tmp_path, "1", sys.executable, "-m", "leadline.cli.main", "run", "-q", "--cpu-sample", "--")
    supervisor = next(running)
    deadline = time.monotonic() + 30
    child = None
    while child is None and time.monotonic() < deadline:
        children = Path(f"/proc/{supervisor.pid}/task/{supervisor.pid}/children").read_text().split()
        commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children}
        child = next(
            (int(pid) for pid, command in commands.items() if command.split(b"\0")[1:2] == ["prógram.py".encode()]),
            None,
        )
    assert child is not None
    assert look(child)["held"]["state"] == "waiting for a lock"
    running.close()


def test_refusals_are_one_sentence(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    other = subprocess.Popen(["sleep", "60"])
    try:
        for pid, said in (
            (gone.pid, f"leadline: There is no process {gone.pid}.\n"),
            (other.pid, f"leadline: Process {other.pid} (sleep 60) runs no Python interpreter.\n"),
        ):
            result = leadline("dump", str(pid))
            assert (result.returncode, result.stdout, result.stderr) == (2, "", said)
    finally:
        other.kill()
        other.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_a_process_of_somebody_else_is_refused(program: subprocess.Popen[str]) -> None:
    code = f"""
import os
from leadline.attach.target import AttachError, Target
os.setgid(65534)
os.setuid(65534)
try:
    Target({program.pid})
except AttachError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert result.stdout == f"Process {program.pid} belongs to another user; look at it as that user, or as root.\n"
