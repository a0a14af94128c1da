"""The clock of the day is set while a program is measured."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests import stepped_clock

import leadline

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


BEGAN_EARLIER = """
import sys, time
import leadline
from leadline.capture.current import CURRENT
from tests.stepped_clock import set_clock

leadline.start("out.leadline", quiet=True)
CURRENT.native.set_process_info({"name": "late", "start_ns": time.time_ns() - 5_000_000_000})
set_clock(-3600)
leadline.stop()
"""


def run(tmp_path: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **stepped_clock.make(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_process_that_began_before_it_was_measured_ends_when_measuring_does(tmp_path: Path) -> None:
    """Also where the clock was set back meanwhile, so that what has passed since is all that tells its end."""
    done = run(tmp_path, BEGAN_EARLIER)
    assert (done.returncode, done.stderr) == (0, "")
    [process] = leadline.open(tmp_path / "out.leadline").processes
    assert process.end_ns - process.start_ns >= 5_000_000_000


@pytest.mark.parametrize("seconds", [-86400, 86400])
def test_segments_are_written_on_time_whatever_the_clock_of_the_day_does(seconds: int, tmp_path: Path) -> None:
    done = run(tmp_path, PROGRAM, str(seconds))
    assert (done.stdout, done.stderr) == ("3\n", "")
