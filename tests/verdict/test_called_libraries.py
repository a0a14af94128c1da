"""A wait is a library's where the program called the library, not where the library runs the program."""

from __future__ import annotations

import pytest

from leadline.profiles.build import build
from leadline.verdict.judge import judge

PYTHON = "/usr/lib/python3.11"
WAIT = 'native [waits] | detail={"wait":"lock"} wait=80000000/80'


@pytest.mark.parametrize(
    ("frames", "part"),
    [
        (("subprocess.py", "/home/ada/train.py"), "lock"),
        (("multiprocessing/popen_fork.py", "/home/ada/train.py"), "lock"),
        (("multiprocessing/pool.py", "/home/ada/train.py"), "lock"),
        (("/home/ada/train.py", "subprocess.py"), "child"),
        (("/home/ada/train.py", "multiprocessing/popen_fork.py"), "child"),
        (("/home/ada/train.py", "multiprocessing/pool.py"), "process"),
    ],
)
def test_a_wait_is_the_librarys_where_the_program_called_it(frames: tuple[str, str], part: str) -> None:
    files = [one if one.startswith("/home") else f"{PYTHON}/{one}" for one in frames]
    path = "\n".join(f"{'  ' * (2 + at)}python f{at} @ {file}:{9 + at}" for at, file in enumerate(files))
    profile = build(f"process train.py | pid=5\n  thread main | tid=5 wall_ns=100000000\n{path}\n        {WAIT}")
    account = judge(profile).account
    assert account is not None
    assert max(account.lane("thread"), key=lambda one: one.ns).key == part
