"""The fake vendor libraries, compiled once per test run with the machine's C++ compiler."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.nvidia import fake_gpu

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def fakes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with libcuda.so.1, libcudart.so.13 and libcupti.so.13."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("The fake vendor libraries need a C++ compiler and none was found.")
    folder = tmp_path_factory.mktemp("fakes")
    fake_gpu.build(folder, compiler)
    return folder


def library(path: Path, source: Path, what: str) -> Path:
    """A shared library of one source, with our headers; `what` it is, for who has no compiler."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip(f"{what} needs a C++ compiler and none was found.")
    options = ["-std=c++20", "-fPIC", "-shared", f"-I{ROOT / 'native'}"]
    subprocess.run([compiler, *options, str(source), "-o", str(path), "-ldl"], check=True)
    return path


@pytest.fixture(scope="session")
def inject(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """libleadline_inject.so, which NVTX_INJECTION64_PATH names."""
    path = tmp_path_factory.mktemp("inject") / "libleadline_inject.so"
    return library(path, ROOT / "native/providers/nvidia/inject.cpp", "The library that NVTX loads")
