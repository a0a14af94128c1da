"""The fake GPU seen from Python programs that the tests run: its libraries, and a Triton driver that runs on it."""

from __future__ import annotations

import ctypes
import os
from typing import Any

LIBRARIES = ("libcuda.so.1", "libcudart.so.13", "libcupti.so.13")


def load() -> None:
    """Load the fakes of the folder in FAKES as if the program had started CUDA, with a real clock."""
    folder = os.environ["FAKES"]
    for name in LIBRARIES:
        library = ctypes.CDLL(f"{folder}/{name}", mode=ctypes.RTLD_GLOBAL)
        if name == "libcuda.so.1":
            library.fake_test_setup(130001, b"")


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


def launch(name: bytes, duration_ns: int) -> None:
    """Launch a kernel on the default stream."""
    runtime = ctypes.CDLL(f"{os.environ['FAKES']}/libcudart.so.13")
    runtime.cudaLaunchKernel.argtypes = [ctypes.c_void_p, Dim3, Dim3, *[ctypes.c_void_p] * 3]
    kernel = Kernel(name, duration_ns, 32, 0, False)
    assert runtime.cudaLaunchKernel(ctypes.addressof(kernel), Dim3(1, 1, 1), Dim3(32, 1, 1), None, None, None) == 0


def triton_driver() -> Any:
    """Triton's own CUDA driver, with the four questions answered that it asks of torch; the rest goes to the fakes."""
    os.environ["TRITON_LIBCUDA_PATH"] = os.environ["FAKES"]
    from triton.backends.nvidia.driver import CudaDriver, CudaLauncher, CudaUtils

    class FakeCudaDriver(CudaDriver):
        def __init__(self) -> None:
            self.utils = CudaUtils()
            self.launcher_cls = CudaLauncher
            self.get_device_capability = lambda device=0: (9, 0)
            self.get_current_device = lambda: 0
            self.set_current_device = lambda device: None
            self.get_current_stream = lambda device: 0

        @staticmethod
        def is_active() -> bool:
            return True

    return FakeCudaDriver


class FakeTensor:
    """What Triton needs of a tensor: an address and a type."""

    dtype = "fp32"

    def data_ptr(self) -> int:
        return 4096
