"""Programs of the native build under callgrind: counts that no load disturbs, so a gate."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CACHES = ("--cache-sim=yes", "--branch-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64")
"""Those of today's processors, whatever the machine has."""


def built(target: str) -> Path:
    """A program of native/testing, beside the extension that the tests use."""
    if not shutil.which("valgrind") or not shutil.which("cmake"):
        pytest.skip("valgrind and cmake are needed to count instructions")
    build = next(iter(sorted(ROOT.glob("build/cp*/CMakeCache.txt"))), None)
    if build is None:
        pytest.skip(f"the extension was built elsewhere; `make build` makes a folder to build {target} in")
    command = ["cmake", "--build", str(build.parent), "--target", target]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]
    return build.parent / "native/testing" / target


def counts(program: Path, *arguments: str, caches: bool = False) -> dict[str, int]:
    """Of the whole program, by callgrind's names: Ir, and with `caches` I1mr, D1mr, D1mw, Bcm and others."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *(CACHES if caches else ())]
    done = subprocess.run([*command, str(program), *arguments], capture_output=True, text=True, check=True)
    names = re.search(r"Events\s*: (.+)", done.stderr)
    values = re.search(r"Collected : (.+)", done.stderr)
    assert names is not None and values is not None, done.stderr
    return dict(zip(names[1].split(), map(int, values[1].split()), strict=True))
