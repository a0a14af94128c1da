"""The fake GPU seen from Python programs that tests and the rehearsal of bench/gpu run: its libraries and launches."""

from __future__ import annotations

import ctypes
import functools
import os

LIBRARIES = ("libcuda.so.1", "libcudart.so.13", "libcupti.so.13")


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
