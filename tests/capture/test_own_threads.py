"""Threads of ours are nobody else's: a program that replaces `threading`, or lists its threads, meets none of them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from leadline._own_thread import Flag, OwnThread

REPLACED = """
import _thread, threading, time
mine = threading.enumerate()
main = _thread.get_ident()

def none(*_, **__):
    raise RuntimeError("replaced")

# as gevent's monkey patching leaves them
threading.get_ident = lambda: main if _thread.get_ident() == main else 7
threading._allocate_lock = threading.Event = threading.Condition = none
time.sleep(0.6)
print(len(mine))
"""
OPTIONS = ["--trace", "seconds=0.2", "--budget", "1%", "--endpoint", "port"]


def measured(folder: Path, program: str) -> tuple[int, str, str]:
    (folder / "program.py").write_text(program)
    command = [sys.executable, "-m", "leadline", "run", "-q", "-o", "out.leadline", *OPTIONS, "program.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_program_that_replaces_threading_sees_no_thread_and_no_word_of_ours(tmp_path: Path) -> None:
    assert measured(tmp_path, REPLACED) == (0, "1\n", "")


def test_monkey_patching_by_gevent(tmp_path: Path) -> None:
    pytest.importorskip("gevent")
    program = "from gevent import monkey; monkey.patch_all()\nimport time; time.sleep(0.6); print('ok')"
    assert measured(tmp_path, program) == (0, "ok\n", "")


def test_a_flag_is_set_once_and_for_all() -> None:
    flag = Flag()
    assert not flag.is_set() and not flag.wait(0)
    flag.set()
    flag.set()
    assert flag.is_set() and flag.wait(0) and flag.wait() and flag.is_set()


def test_what_a_thread_raises_is_printed_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    thread = OwnThread(lambda number: 1 / number, 0)
    thread.start()
    assert thread.join(10) and not thread.is_alive()
    assert capfd.readouterr() == ("", "")


def test_a_thread_may_wait_for_itself() -> None:
    begun = time.monotonic()
    thread: OwnThread = OwnThread(lambda: thread.join(10))
    thread.start()
    assert thread.join(5) and time.monotonic() - begun < 5


def test_the_programs_signals_are_not_for_it() -> None:
    masks: list[set[int]] = []
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    thread = OwnThread(lambda: masks.append({int(one) for one in signal.pthread_sigmask(signal.SIG_BLOCK, ())}))
    thread.start()
    assert thread.join(10)
    assert {signal.SIGTERM, signal.SIGUSR2, signal.SIGINT} <= masks[0]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_a_thread_is_named_as_ours_from_its_first_moment_and_nobody_else_is() -> None:
    def name() -> str:
        return Path("/proc/thread-self/comm").read_text().strip()

    before, seen = name(), []
    thread = OwnThread(lambda: seen.append(name()))
    thread.start()
    assert thread.join(10) and seen == ["leadline-python"] and name() == before
