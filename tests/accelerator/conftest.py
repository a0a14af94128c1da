"""The toy accelerator, built once per test run, and programs that run on it under `leadline run --accelerator`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from leadline.profiles import Profile, open_profile
from leadline.profiles.tree import Node

_HERE = Path(__file__).parent
_NATIVE = _HERE.parents[1] / "native"
_TOY = _NATIVE / "testing/accelerator/toy_npu.c"

PRELUDE = """
import ctypes, os
toy = ctypes.CDLL(os.environ["TOY"] + "/libtoynpu.so")
for name in ("toy_stream_create", "toy_malloc"):
    getattr(toy, name).restype = ctypes.c_void_p
P, U64 = ctypes.c_void_p, ctypes.c_uint64
toy.toy_stream_synchronize.argtypes = [P]
toy.toy_launch.argtypes = [P, P, ctypes.c_uint32, P]
toy.toy_copy.argtypes = [P, P, ctypes.c_size_t, ctypes.c_int, P, U64]
toy.toy_free.argtypes = [P]
toy.toy_wait.argtypes = [U64]
DONE = ctypes.CFUNCTYPE(None, P)
toy.toy_submit.argtypes = [ctypes.c_char_p, P, ctypes.c_uint32, DONE, P]

def load(name):
    kernel = P()
    assert toy.toy_load(name, ctypes.byref(kernel)) == 0
    return kernel
"""


@dataclass(frozen=True)
class Seen:
    """What a program left."""

    profile: Profile
    said: str

    def nodes(self, name: str) -> list[Node]:
        """All of this name that are device work."""
        return [node for kind in ("kernel", "copy") for node in self.profile.tree.find(kind=kind) if node.name == name]

    def total(self, metric: str, name: str) -> tuple[int, int]:
        """Count and sum of a metric over device work of this name."""
        values = [node.exclusive(metric) for node in self.nodes(name)]
        return sum(value.count for value in values), sum(value.sum for value in values)

    def above(self, name: str, steps: int) -> set[tuple[str, ...]]:
        """The last names on the way to device work of this name."""
        return {tuple(one.name for one in node.path()[-1 - steps : -1]) for node in self.nodes(name)}


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of libtoynpu.so."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("The toy accelerator needs a C compiler and none was found.")
    folder = tmp_path_factory.mktemp("toy")
    command = [
        compiler,
        "-O1",
        "-g",
        "-fPIC",
        "-shared",
        f"-I{_NATIVE}",
        str(_TOY),
        "-o",
        str(folder / "libtoynpu.so"),
        "-lpthread",
    ]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture
def run(toy: Path, tmp_path: Path) -> Callable[..., Seen]:
    """Runs a program (source text) with `--accelerator toy.toml`, or another file."""

    def run(source: str, *options: str, description: str | Path = _HERE / "toy.toml", prelude: str = PRELUDE) -> Seen:
        program = tmp_path / "program.py"
        program.write_text(prelude + source)
        output = tmp_path / "out.leadline"
        result = subprocess.run(
            [
                sys.executable,
                "-m",
                "leadline",
                "run",
                "-o",
                str(output),
                "--accelerator",
                str(description),
                *options,
                str(program),
            ],
            env={**os.environ, "TOY": str(toy), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert result.returncode == 0, result.stderr
        return Seen(open_profile(output), result.stderr + result.stdout)

    return run
