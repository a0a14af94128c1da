"""Servers end their workers with SIGKILL: that is no crash, and what it cost is said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from leadline.profiles import open_profile

_PARENT = """
import multiprocessing, os, signal, sys, time
def work(ready):
    ready.send(1)
    time.sleep(60)
if __name__ == "__main__":
    ours, theirs = multiprocessing.get_context("{how}").Pipe()
    child = multiprocessing.get_context("{how}").Process(target=work, args=(theirs,))
    child.start()
    ours.recv()
    {end}
    child.join()
"""


def run(folder: Path, how: str, end: str) -> tuple[bool, list[str]]:
    script = folder / "server.py"
    script.write_text(_PARENT.format(how=how, end=end))
    command = [sys.executable, "-m", "leadline", "run", "-o", "x.leadline", "--", sys.executable, str(script)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
    profile = open_profile(folder / "x.leadline")
    strings = profile.tree.tables.strings
    return bool(profile.meta["complete"]), [strings[row] for row in profile.tree.tables["losses"]["detail"].tolist()]


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_a_parents_sigkill_is_no_crash(tmp_path: Path, how: str) -> None:
    complete, losses = run(tmp_path, how, "child.kill()")
    assert complete
    assert [one for one in losses if "was ended by its parent with SIGKILL" in one]


def test_a_kill_from_elsewhere_is_one(tmp_path: Path) -> None:
    end = "import subprocess; subprocess.run(['kill', '-9', str(child.pid)])"
    complete, losses = run(tmp_path, "spawn", end)
    assert not complete
    assert not [one for one in losses if "by its parent" in one]
