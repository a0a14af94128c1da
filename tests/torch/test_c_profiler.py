"""The profiler of examples/profiler_in_c beside Leadline's own collector: both count the same."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import leadline

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import ctypes, threading, leadline, torch
from leadline import _native

profiler = ctypes.CDLL("./op_profiler.so")
profiler.op_profiler_start.restype = ctypes.c_void_p
profiler.op_profiler_stop.argtypes = [ctypes.c_void_p]

def work(times):
    a = torch.ones(64, 64)
    for _ in range(times):
        a @ a  # the line

with leadline.profile("run.leadline"):
    work(3)  # not seen by the profiler
    mine = profiler.op_profiler_start(_native.__file__.encode())
    assert mine
    threads = [threading.Thread(target=work, args=(50,)) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    profiler.op_profiler_stop(mine)
    work(2)  # nor this
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")
def test_an_independent_profiler_counts_what_leadline_counts(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs torch")
    source = ROOT / "examples/profiler_in_c/op_profiler.c"
    include = ["-I", str(ROOT / "native/include")]
    warnings = ["-Wall", "-Wextra", "-Werror", "-std=c11", "-D_GNU_SOURCE"]
    command = ["cc", "-O2", "-shared", "-fPIC", *warnings, *include, str(source), "-o", "op_profiler.so", "-ldl"]
    subprocess.run(command, cwd=tmp_path, check=True)
    (tmp_path / "program.py").write_text(PROGRAM)
    result = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in result.stdout.splitlines()}
    assert "(no room)" not in rows
    calls, total, longest, line = rows["aten::mm"]
    assert int(calls) == 200
    assert 0 < int(longest) <= int(total)
    lines = PROGRAM.splitlines()
    assert line.endswith(f"program.py:{lines.index('        a @ a  # the line') + 1}")
    profile = leadline.open(str(tmp_path / "run.leadline"))
    ours = sum(node.exclusive("call_time").count for node in profile.tree.walk() if node.name == "aten::mm")
    assert ours == 205
