"""What the native side takes about GPU kernels from those who generate them, whoever made the device."""

from __future__ import annotations

from typing import Protocol


class GpuKernels(Protocol):
    """The part of `leadline._native` that keeps where kernels come from. Nothing here raises.

    `kernel` is the name that the device's records will show; `detail` a JSON object as text; `line` 0 where unknown.
    """

    def gpu_kernel_source(self, kernel: str, file: str, line: int, detail: str) -> None: ...
    def gpu_kernel_user(self, kernel: str, user: str, file: str, line: int, detail: str) -> None:
        """As above, for launches from the generated file `user`: compilers name kernels of several graphs alike."""
