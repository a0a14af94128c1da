"""The clock of the day is set while a program is measured."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests import stepped_clock

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")

PROGRAM = """
import os, signal, sys, threading, time
from pathlib import Path
import leadline
from tests.stepped_clock import set_clock

leadline.start("out.leadline", quiet=True, flush_interval_s=0.05)
set_clock(int(sys.argv[1]))

def written():
    return {(path.name, path.stat().st_ino) for path in Path("out.leadline.part").glob("*/*.segment")}

before, until, leave = written(), time.monotonic() + 30, threading.Event()
changes = 0
while changes < 3 and time.monotonic() < until:
    if (now := written()) != before:
        before, changes = now, changes + 1
    leave.wait(0.01)
print(changes)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("seconds", [-86400, 86400])
def test_segments_are_written_on_time_whatever_the_clock_of_the_day_does(seconds: int, tmp_path: Path) -> None:
    environment = {**os.environ, **stepped_clock.make(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(seconds)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("3\n", "")
