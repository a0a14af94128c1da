"""The fake vendor libraries, compiled once per test run with the machine's C++ compiler."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.amd import fake_gpu


@pytest.fixture(scope="session")
def fakes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the fake HIP, HSA, rocprofiler-sdk and roctx."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("The fake vendor libraries need a C++ compiler and none was found.")
    folder = tmp_path_factory.mktemp("rocm")
    fake_gpu.build(folder, compiler)
    return folder
