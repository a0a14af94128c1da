"""What each thread of a running program does, against what the program was written to do."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.capture.conftest import LEADLINE

from leadline.attach.offsets import find_offsets

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


def look_when_asleep(program: subprocess.Popen[str]) -> dict[str, dict]:
    """As `look`, once its main thread sleeps; that imports before what it sleeps in."""
    while "inner" not in (threads := look(program.pid)):
        assert program.poll() is None
    return threads


def test_stacks_lines_and_what_is_waited_for(program: subprocess.Popen[str]) -> None:
    threads = look_when_asleep(program)
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


def test_py_spy_finds_the_same_stacks(program: subprocess.Popen[str]) -> None:
    spy = Path(sys.executable).with_name("py-spy")
    if not spy.exists():
        pytest.skip("py-spy is not installed here")
    threads = look_when_asleep(program)
    asked = [str(spy), "dump", "--json", "--pid", str(program.pid)]
    spied = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    assert spied.returncode == 0, spied.stderr
    theirs = {
        one["os_thread_id"]: [(frame["name"].rpartition(".")[2], frame["line"]) for frame in one["frames"]]
        for one in json.loads(spied.stdout)
    }
    ours = {
        thread["tid"]: [(frame["name"].rpartition(".")[2], frame["line"]) for frame in thread["frames"]]
        for thread in threads.values()
        if thread["frames"]
    }
    assert len(ours) == 4 and ours == theirs


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
    while " running, " not in (said := leadline("dump", str(busy_program.pid), "--native").stdout):
        assert busy_program.poll() is None
    assert "(its native frames can be read only while it waits)" in said.partition(" running, ")[2].split("\n\n")[0]
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
            (gone.pid, f"leadline: There is no process {gone.pid}; `pgrep -af python` lists running programs.\n"),
            (
                other.pid,
                f"leadline: Process {other.pid} (sleep 60) runs no Python interpreter; `pgrep -af python` lists those that do.\n",
            ),
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
    assert (
        result.stdout == f"Process {program.pid} belongs to another user; run this command as that user, or as root.\n"
    )


CHAIN = """
typedef void (*callback)(void);
__attribute__((noinline)) void chain_middle(callback call) { call(); __asm__ volatile(""); }
void chain_outer(callback call) { chain_middle(call); __asm__ volatile(""); }
"""

NATIVE = """
import ctypes, threading, leadline
chain = ctypes.PyDLL("./chain.so")
CALLBACK = ctypes.CFUNCTYPE(None)
lock = threading.Lock()
lock.acquire()
def innermost():
    print("ready", flush=True)
    lock.acquire()
def caller():
    with leadline.region("the region"):
        chain.chain_outer(CALLBACK(innermost))
sorted([1], key=lambda _: caller())
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="rules for other processors are not written")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")
@pytest.mark.parametrize("measured", [False, True])
def test_native_frames_stand_between_python_frames_of_a_program_that_hangs(tmp_path: Path, measured: bool) -> None:
    (tmp_path / "chain.c").write_text(CHAIN)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "chain.c", "-o", "chain.so"], cwd=tmp_path, check=True)
    (tmp_path / "hangs.py").write_text(NATIVE)
    before = ["run", "-q", "--flush-interval", "0.2", "hangs.py"] if measured else []
    command = [*LEADLINE, *before] if measured else [sys.executable, "hangs.py"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        pid = next(
            (
                int(one)
                for one in children
                if b"hangs.py" in Path(f"/proc/{one}/cmdline").read_bytes().split(b"\0")[1:2]
            ),
            process.pid,
        )
        deadline = time.monotonic() + 30
        while True:
            result = leadline("dump", "--native", "--json", str(pid))
            assert result.returncode == 0, result.stderr
            seen = json.loads(result.stdout)
            main = next(one for one in seen["threads"] if one["main"])
            if not measured or main["scopes"] or time.monotonic() > deadline:
                break
        names = [frame["name"] for frame in main["joined"]]
        mine = [name for name in names if name in ("innermost", "chain_middle", "chain_outer", "caller", "<lambda>")]
        assert mine == ["innermost", "chain_middle", "chain_outer", "caller", "<lambda>"], names
        assert "[no unwind information]" not in names
        assert not any("PyEval" in name or "_native" in name for name in names), names
        assert ("the region" in [scope["name"] for scope in main["scopes"]]) == measured
        assert (seen["scopes_age_s"] is not None) == measured
        everything = json.loads(leadline("dump", "--native=all", "--json", str(pid)).stdout)
        (main,) = (one for one in everything["threads"] if one["main"])
        assert len(main["joined"]) > len(names)
        text = leadline("dump", "--native", str(pid)).stdout
        assert "chain_middle  [chain.so]" in text and ("in the region" in text) == measured
    finally:
        for one in (
            *map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()),
            process.pid,
        ):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        process.communicate()


def test_who_looks_may_have_threads_of_its_own() -> None:
    """The list of threads that tells where an interpreter keeps them then holds more than the two that are known."""
    with ThreadPoolExecutor(4) as pool:
        ready = threading.Barrier(5)
        for _ in range(4):
            pool.submit(ready.wait, 60)
        found = find_offsets()
        ready.wait(60)
    assert found == find_offsets()
