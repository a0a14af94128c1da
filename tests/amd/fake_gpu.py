"""The fake AMD GPU seen from Python programs that tests and the rehearsal of bench/gpu run: its libraries and launches."""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import sys
from pathlib import Path

LIBRARIES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "libhsa-runtime64.so.1": (
        (
            "fake_counted.cpp",
            "fake_hsa.cpp",
            "fake_rocm.cpp",
            "fake_sampled.cpp",
            "fake_scratch.cpp",
            "fake_traced.cpp",
        ),
        (),
    ),
    "librocprofiler-sdk.so.1": (("fake_sdk.cpp",), ("libhsa-runtime64.so.1",)),
    "libamdhip64.so.7": (("fake_hip.cpp", "fake_modules.cpp"), ("libhsa-runtime64.so.1",)),
    "libhiprtc.so.7": (("fake_hiprtc.cpp",), ("libamdhip64.so.7",)),
    "librccl.so.1": (("fake_rccl.cpp",), ("libhsa-runtime64.so.1", "libamdhip64.so.7")),
    "librocprofiler-sdk-roctx.so.1": (("fake_roctx.cpp",), ("libhsa-runtime64.so.1",)),
    "libroctx64.so.4": (("fake_older_roctx.cpp",), ("libhsa-runtime64.so.1",)),
    "libroctracer64.so.4": (("fake_roctracer.cpp",), ("libhsa-runtime64.so.1",)),
}
"""File name of a fake to its sources in native/testing/amd and the fakes it needs, which come before it."""


def build(folder: Path, compiler: str, optimise: str = "-O1") -> None:
    """Compile the fakes into a folder; raises CalledProcessError."""
    from tests import vendor_fakes  # programs that stand beside this file import it without the package

    vendor_fakes.build(folder, compiler, "amd", LIBRARIES, optimise)


def run_program(
    output: Path, fakes: Path, *options: str, program: str | Path = "fake_program.py", **environment: str
) -> tuple[int, str]:
    """`leadline run` of a program, by its path or its name beside this file, into `output`: exit status and stderr."""
    program = str(Path(__file__).parent / program)
    result = subprocess.run(
        [sys.executable, "-m", "leadline", "run", "-o", str(output), *options, program],
        env={**os.environ, "FAKES": str(fakes), "LD_LIBRARY_PATH": str(fakes), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return result.returncode, result.stdout + result.stderr


class Kernel(ctypes.Structure):
    """What the fakes take as the function of a launch."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("duration_ns", ctypes.c_int64),
        ("vgprs", ctypes.c_int32),
        ("lds", ctypes.c_int32),
        ("fails", ctypes.c_bool),
        ("agprs", ctypes.c_int32),
        ("sgprs", ctypes.c_int32),
        ("scratch", ctypes.c_int32),
    ]


class Dim3(ctypes.Structure):
    """A grid or a block."""

    _fields_ = [("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32)]


@functools.cache
def hip() -> ctypes.CDLL:
    """The fake HIP runtime with a real clock, with the types of its launch."""
    library = ctypes.CDLL(f"{os.environ['FAKES']}/libamdhip64.so.7", mode=ctypes.RTLD_GLOBAL)
    library.hipLaunchKernel.argtypes = [ctypes.c_void_p, Dim3, Dim3, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    library.hipMemcpyAsync.argtypes = [*[ctypes.c_void_p] * 2, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
    library.hipMalloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.fake_real_clock()
    return library


@functools.cache
def roctx() -> ctypes.CDLL:
    """The fake roctx of rocprofiler-sdk, or with OLDER_ROCTX that of before it."""
    name = "libroctx64.so.4" if "OLDER_ROCTX" in os.environ else "librocprofiler-sdk-roctx.so.1"
    return ctypes.CDLL(f"{os.environ['FAKES']}/{name}", mode=ctypes.RTLD_GLOBAL)


def launch(kernel: Kernel, grid: int = 304, block: int = 256, lds: int = 0, stream: int | None = None) -> None:
    """Launch a kernel, on the default stream unless another one is given."""
    status = hip().hipLaunchKernel(ctypes.addressof(kernel), Dim3(grid, 1, 1), Dim3(block, 1, 1), None, lds, stream)
    assert status == 0
