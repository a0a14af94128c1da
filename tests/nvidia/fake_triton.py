"""Triton on the fake GPU: a driver for its launcher, and what stands for a tensor."""

from __future__ import annotations

import os
from typing import Any


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
