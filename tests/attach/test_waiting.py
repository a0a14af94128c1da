"""What a thread waits for, told from its system call's arguments."""

from __future__ import annotations

import platform
from typing import Any

import pytest

from leadline.attach.waiting import doing


class Drawn:
    """A thread with the two files of `/proc` that are read."""

    def __init__(self, call: str) -> None:
        self._texts = {"stat": "1 (a) S " + " ".join(["0"] * 20), "syscall": call + " 0x7ffe 0x7f00"}

    def text_of_thread(self, tid: int, name: str) -> str:
        return self._texts[name]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of system calls are those of x86-64")
@pytest.mark.parametrize(
    ("call", "state"),
    [
        ("270 0x0 0x0 0x0 0x0 0x7ffd 0x0", "asleep"),  # time.sleep before CPython 3.11
        ("270 0x4 0x7ffd 0x0 0x0 0x0 0x0", "waiting for input or output"),
        ("23 0x0 0x0 0x0 0x0 0x7ffd 0x0", "asleep"),
        ("7 0x0 0x0 0x64 0x0 0x0 0x0", "asleep"),
        ("7 0x7ffd 0x1 0x64 0x0 0x0 0x0", "waiting for input or output"),
        ("271 0x0 0x0 0x7ffd 0x0 0x8 0x0", "asleep"),
        ("232 0x5 0x7ffd 0x0 0x0 0x0 0x0", "waiting for input or output"),
    ],
)
def test_waiting_for_no_file_is_sleep(call: str, state: str) -> None:
    target: Any = Drawn(call)
    assert doing(target, 1, 0).state == state
