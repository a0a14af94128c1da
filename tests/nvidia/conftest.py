"""The fake vendor libraries, compiled once per test run with the machine's C++ compiler."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_FAKES = {
    "libcuda.so.1": (("fake_gpu.cpp", "fake_graphs.cpp", "fake_calls.cpp", "fake_cuda.cpp", "fake_modules.cpp"), ()),
    "libcudart.so.13": (("fake_cudart.cpp",), ("libcuda.so.1",)),
    "libcupti.so.13": (("fake_cupti.cpp",), ("libcuda.so.1",)),
}


@pytest.fixture(scope="session")
def fakes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with libcuda.so.1, libcudart.so.13 and libcupti.so.13."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("The fake vendor libraries need a C++ compiler and none was found.")
    folder = tmp_path_factory.mktemp("fakes")
    for name, (sources, needed) in _FAKES.items():
        command = [
            compiler,
            "-std=c++20",
            "-O1",
            "-fPIC",
            "-shared",
            f"-I{ROOT / 'native'}",
            f"-I{ROOT / 'native/include'}",
        ]
        command += [str(ROOT / "native/testing/nvidia" / source) for source in sources]
        command += ["-o", str(folder / name), f"-Wl,-soname,{name}", f"-Wl,-rpath,{folder}", f"-L{folder}"]
        command += [f"-l:{library}" for library in needed]
        subprocess.run([*command, "-lpthread"], check=True)
    return folder


@pytest.fixture(scope="session")
def inject(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """libleadline_inject.so, which NVTX_INJECTION64_PATH names."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("The library that NVTX loads needs a C++ compiler and none was found.")
    path = tmp_path_factory.mktemp("inject") / "libleadline_inject.so"
    source = ROOT / "native/providers/nvidia/inject.cpp"
    subprocess.run([compiler, "-std=c++20", "-fPIC", "-shared", str(source), "-o", str(path), "-ldl"], check=True)
    return path
