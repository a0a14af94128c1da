"""Builds cct_replay once for all workers of a test run, from what `make test-cpp` has compiled where it has run."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Of `make test-cpp`: nearly all is compiled there, and faults of memory are told.
SANITIZED = ROOT / "build" / "address"


@pytest.fixture(scope="session")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs cct_replay: replay(events, output, *arguments)."""
    if not shutil.which("cmake") or not shutil.which("c++"):
        pytest.skip("cmake and a C++ compiler are needed to build cct_replay")
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if base.name.startswith("popen-") else base  # pytest-xdist gives each worker a folder inside
    done = shared / "cct_replay.done"
    build = SANITIZED if (SANITIZED / "CMakeCache.txt").is_file() else shared / "cct_replay"
    with (shared / "cct_replay.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            options = ["-DLEADLINE_PYTHON=OFF", "-DLEADLINE_TESTS=OFF", "-DCMAKE_BUILD_TYPE=Debug"]
            options.append("-DCMAKE_CXX_FLAGS_DEBUG=-O0")  # compiled in half the time that -g takes
            generator = ["-G", "Ninja"] if shutil.which("ninja") else []
            if build != SANITIZED:
                configure = ["cmake", "-S", ROOT, "-B", build, *generator, *options]
                subprocess.run(configure, check=True, capture_output=True)
            subprocess.run(["cmake", "--build", build, "--target", "cct_replay"], check=True, capture_output=True)
            done.touch()
    program = build / "native" / "testing" / "cct_replay"

    def run(events: str, output: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, output, *arguments], input=events, text=True, capture_output=True, timeout=60)

    return run
