"""A pause of measuring is no time of any thread: neither of its wall time nor, with that, of what it idled."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.truth.invariants import contradictions

from leadline.analysis import Analysis
from leadline.profiles import open_profile
from leadline.report import build_report
from leadline.report.text import render_text

PROGRAM = """
    import json, sys, threading, time
    import leadline

    def rest():
        leadline.pause()
        began = time.monotonic_ns()
        time.sleep(0.2)
        rested = time.monotonic_ns() - began
        leadline.resume()
        return rested

    def beside(ready, go):
        with leadline.region("beside"):
            ready.set()
            go.wait()

    with leadline.profile(sys.argv[1], quiet=True):
        ready, go = threading.Event(), threading.Event()
        thread = threading.Thread(target=beside, args=(ready, go), name="beside")
        thread.start()
        ready.wait()
        with leadline.region("before"):
            sum(range(1000))
        rested = [rest(), rest()]
        go.set()
        thread.join()
    print(json.dumps(rested))
"""


def test_threads_were_not_there_while_measuring_was_paused(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    command = [sys.executable, "program.py", "out.leadline"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    rested = sum(json.loads(done.stdout))
    profile = open_profile(tmp_path / "out.leadline")
    assert contradictions(profile) == []
    (record,) = profile.meta["processes"]
    assert rested <= record["paused_ns"] < record["wall_ns"]
    assert len(profile.threads) == 2
    for thread in profile.threads:
        assert thread.wall_ns + rested <= record["wall_ns"]
    for split in Analysis(profile).time_splits:
        assert split.parts_ns["idle"] + rested <= record["wall_ns"]
    assert "of it paused and not in any figure)" in render_text(build_report(profile))
