"""The fake GPU seen from Python programs that tests and the rehearsal of bench/gpu run: its libraries and launches."""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import sys
from pathlib import Path

LIBRARIES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "libcuda.so.1": (
        (
            "fake_gpu.cpp",
            "fake_buffers.cpp",
            "fake_graphs.cpp",
            "fake_setup.cpp",
            "fake_calls.cpp",
            "fake_cuda.cpp",
            "fake_modules.cpp",
            "fake_sampling.cpp",
            "fake_counting.cpp",
        ),
        (),
    ),
    "libcudart.so.13": (("fake_cudart.cpp",), ("libcuda.so.1",)),
    "libcupti.so.13": (("fake_cupti.cpp", "fake_cupti_sampling.cpp", "fake_cupti_counting.cpp"), ("libcuda.so.1",)),
}
"""File name of a fake to its sources in native/testing/nvidia and the fakes it needs, which come before it."""


def build(folder: Path, compiler: str, optimise: str = "-O1") -> None:
    """Compile the fakes into a folder; raises CalledProcessError."""
    from tests import vendor_fakes  # programs that stand beside this file import it without the package

    vendor_fakes.build(folder, compiler, "nvidia", LIBRARIES, optimise)


def run_program(output: Path, fakes: Path, **environment: str) -> tuple[int, str]:
    """Run fake_program.py, which profiles itself into `output`, in a process of its own: exit status and stderr."""
    result = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("fake_program.py")), str(output)],
        env={**os.environ, "FAKES": str(fakes), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return result.returncode, result.stderr


def load() -> None:
    """Load the fakes of the folder in FAKES and start CUDA, as a program does; with a real clock."""
    folder = os.environ["FAKES"]
    for name in LIBRARIES:
        library = ctypes.CDLL(f"{folder}/{name}", mode=ctypes.RTLD_GLOBAL)
        if name == "libcuda.so.1":
            library.fake_test_setup(130001, b"")
            library.fake_test_not_started()
            driver = library
    assert driver.cuInit(0) == 0


class Kernel(ctypes.Structure):
    """What the fakes take as the function of a launch."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("duration_ns", ctypes.c_int64),
        ("registers", ctypes.c_int32),
        ("shared", ctypes.c_int32),
        ("fails", ctypes.c_bool),
    ]


class Dim3(ctypes.Structure):
    """A grid or a block."""

    _fields_ = [("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32)]


@functools.cache
def runtime() -> ctypes.CDLL:
    """The fake runtime library, with the types of its launch."""
    library = ctypes.CDLL(f"{os.environ['FAKES']}/libcudart.so.13")
    library.cudaLaunchKernel.argtypes = [ctypes.c_void_p, Dim3, Dim3, *[ctypes.c_void_p] * 3]
    return library


def launch(name: bytes, duration_ns: int, stream: ctypes.c_void_p | None = None) -> None:
    """Launch a kernel, on the default stream unless another one is given."""
    kernel = Kernel(name, duration_ns, 32, 0, False)
    assert runtime().cudaLaunchKernel(ctypes.addressof(kernel), Dim3(1, 1, 1), Dim3(32, 1, 1), None, None, stream) == 0


def new_stream() -> ctypes.c_void_p:
    """A stream with a number of its own."""
    stream = ctypes.c_void_p()
    assert runtime().cudaStreamCreate(ctypes.byref(stream)) == 0
    return stream
