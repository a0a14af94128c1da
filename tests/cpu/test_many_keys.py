"""A process whose libraries have made many thread-specific keys (torch alone makes a dozen) before it is measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cpu.conftest import SPIN, Sampled

import leadline

MANY = """
import ctypes
key = ctypes.c_uint()
for _ in range(40):
    assert ctypes.CDLL(None).pthread_key_create(ctypes.byref(key), None) == 0
assert key.value >= 32  # from here on a thread's value needs memory of its own
"""
IMPORT = "import leadline, leadline._native"
WORK = """
def in_thread(): spin(0.2)
def in_main(): spin(0.2)
with leadline.profile("out.leadline", quiet=True, cpu_sample=500.0):
    thread = threading.Thread(target=in_thread)
    thread.start()
    in_main()
    thread.join()
"""


@pytest.mark.parametrize("beginning", [MANY + IMPORT, IMPORT + MANY], ids=["before", "after"])
def test_samples_have_their_python_lines(tmp_path: Path, beginning: str) -> None:
    subprocess.run([sys.executable, "-c", SPIN + beginning + WORK], cwd=tmp_path, check=True, timeout=120)
    seen = Sampled(leadline.open(tmp_path / "out.leadline"), "")
    assert seen.losses() == {}
    for name in ("in_main", "in_thread"):
        assert seen.below(name) == pytest.approx(0.2e9, rel=0.25)
