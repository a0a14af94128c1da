"""Frames are read where this build of CPython keeps them, or not at all: wrong offsets end in a sentence."""

from __future__ import annotations

import subprocess
import sys
import sysconfig

import pytest

from leadline import _native

FIELDS = [
    "thread_frame",
    "cframe",
    "cframe_frame",
    "cframe_previous",
    "root_cframe",
    "previous",
    "code",
    "instruction",
    "locals",
    "owner",
    "entry",
    "code_start",
]
SHIFTS = (-64, -24, -16, -8, -4, -2, -1, 1, 2, 4, 8, 16, 24, 64, 4096, 1 << 20, 1 << 30)


@pytest.mark.parametrize("field", FIELDS)
def test_a_layout_with_one_field_elsewhere_is_refused(field: str) -> None:
    if _native.refusal_of_shifted(field, 0) is None:
        return  # this version has no such field
    assert _native.refusal_of_shifted(field, 0) == "", "the right layout is accepted"
    taken = [shift for shift in SHIFTS if _native.refusal_of_shifted(field, shift) == ""]
    assert taken == []


def test_what_a_version_keeps_elsewhere_is_known() -> None:
    there = {field for field in FIELDS if _native.refusal_of_shifted(field, 0) is not None}
    assert {"thread_frame", "previous", "code", "instruction", "locals"} <= there
    assert ("owner" in there) == (sys.version_info >= (3, 12))
    assert ("cframe" in there) == (sys.version_info < (3, 12))


def test_the_self_test_leaves_an_exception_and_a_deep_program_alone() -> None:
    def deep(depth: int) -> str:
        return deep(depth - 1) if depth else str(_native.refusal_of_shifted("code", 0))

    try:
        raise ValueError("kept")
    except ValueError as error:
        assert deep(200) == ""
        assert sys.exc_info()[1] is error


MOVED = """
import ctypes, sys
from leadline import _native
wanted = _native.frame_layout()["thread_frame"]
table = (ctypes.c_uint64 * 40).in_dll(ctypes.pythonapi, "_PyRuntime")
moved = [at for at in range(6, 40) if table[at] == wanted]
assert moved
for at in moved:
    table[at] += 8
import leadline
with leadline.profile(sys.argv[1]):
    with leadline.region("mine"):
        print(sum(range(100_000)))
print("after")
"""


@pytest.mark.skipif(sys.version_info < (3, 13), reason="earlier versions do not describe themselves")
def test_a_program_whose_interpreter_describes_itself_wrongly_runs_on(tmp_path) -> None:
    out = tmp_path / "out.leadline"
    command = [sys.executable, "-c", MOVED, str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "4999950000\nafter\n"), done.stderr
    command = [sys.executable, "-m", "leadline", "report", str(out)]
    report = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "mine" in report.stdout
    assert "self-test of Python frame reading failed" in report.stdout + report.stderr


def test_this_build_is_one_that_is_read() -> None:
    odd = sysconfig.get_config_var("Py_GIL_DISABLED") or hasattr(sys, "gettotalrefcount")
    assert (_native.frame_layout() is None) == bool(odd)


class _Made:
    def __init__(self, found: list[str | None]) -> None:
        found.append(_native.refusal_of_shifted("code", 0))


def test_frames_below_a_class_that_was_called_often_are_read() -> None:
    """From the second call on CPython 3.13 has a frame of its own between the class and its __init__."""
    found: list[str | None] = []
    for _ in range(50):
        _Made(found)
    assert found == [""] * 50
