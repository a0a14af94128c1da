"""`leadline run` with its defaults names the line that a program waits on, and what for."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.capture.conftest import Workplace

import leadline

LOOP = """
import leadline

{before}

def step():
    {waits}

for _ in range(40):
    step()
    leadline.step()
"""
SOCKETS = """
import socket, threading, time
ours, theirs = socket.socketpair()

def answers():
    while theirs.recv(1):
        time.sleep(0.03)
        theirs.send(b"y")

threading.Thread(target=answers, daemon=True).start()
"""
QUEUE = """
import queue, threading, time
ready = queue.Queue(1)

def makes():
    while True:
        time.sleep(0.03)
        ready.put(1)

threading.Thread(target=makes, daemon=True).start()
"""


@pytest.mark.parametrize(
    ("before", "waits", "key"),
    [
        ("import time", "time.sleep(0.03)", "sleep"),
        ("import subprocess", "subprocess.run(['sleep', '0.03'], check=True)", "child"),
        (SOCKETS, "ours.send(b'x'); ours.recv(1)", "io"),
        (QUEUE, "ready.get()", "lock"),
    ],
    ids=["sleep", "child", "socket", "queue"],
)
def test_the_line_that_waits_is_the_verdict(tmp_path: Path, before: str, waits: str, key: str) -> None:
    place = Workplace(tmp_path)
    program = place.write("train.py", LOOP.format(before=before, waits=waits))
    line = 1 + next(n for n, text in enumerate(program.read_text().splitlines()) if text == f"    {waits}")
    ran = place.leadline("run", "-q", "-o", "run.leadline", "train.py")
    assert ran.returncode == 0, ran.stderr
    verdict = leadline.open(tmp_path / "run.leadline").verdict
    assert verdict.account is not None
    assert verdict.kind == "blocked", verdict.sentence
    assert max(verdict.account.parts, key=lambda one: one.ns).key == key
    assert f"train.py:{line}" in verdict.sentence


def test_nobody_who_takes_no_samples_is_looked_at(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.write("train.py", LOOP.format(before="import time", waits="time.sleep(0.001)"))
    place.leadline("run", "-q", "--no-cpu-sample", "-o", "run.leadline", "train.py")
    tree = leadline.open(tmp_path / "run.leadline").tree
    assert not tree.exclusive("wait").sum.any()
