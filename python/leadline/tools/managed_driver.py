"""The driver's calls for managed memory, by the names that CUDA 12.2 and all later releases have."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from leadline.tools.errors import ToolError

_DEVICE = 1  # CU_MEM_LOCATION_TYPE_DEVICE
_HOST = 2


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class ManagedDriver:
    """Every call answers 0, or the driver's error."""

    def __init__(self, library: str = "libcuda.so.1") -> None:
        """Raises ToolError where the driver is missing or too old."""
        try:
            self._library = ctypes.CDLL(library)
        except OSError:
            raise ToolError(
                f"The NVIDIA driver ({library}) cannot be loaded; a plan is applied on a GPU only."
            ) from None
        address, size, stream = ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p
        self._prefetch = self._find("cuMemPrefetchAsync_v2", address, size, _Location, ctypes.c_uint, stream)
        try:
            self._discard: Any = self._find(
                "cuMemDiscardBatchAsync", ctypes.c_void_p, ctypes.c_void_p, size, ctypes.c_ulonglong, stream
            )
        except ToolError:
            self._discard = None  # before CUDA 13

    def _find(self, name: str, *arguments: Any) -> Any:
        try:
            found = getattr(self._library, name)
        except AttributeError:
            raise ToolError(f"The driver has no {name}; managed memory is moved by plan from CUDA 12.2 on.") from None
        found.argtypes, found.restype = arguments, ctypes.c_int
        return found

    @property
    def discards(self) -> bool:
        """Whether contents can be thrown away without a copy."""
        return self._discard is not None

    def to_device(self, address: int, size: int, device: int, stream: int) -> int:
        return int(self._prefetch(address, size, _Location(_DEVICE, device), 0, stream))

    def to_host(self, address: int, size: int, stream: int) -> int:
        return int(self._prefetch(address, size, _Location(_HOST, 0), 0, stream))

    def discard(self, ranges: Sequence[tuple[int, int]], stream: int) -> int:
        """`ranges`: address and bytes of each."""
        addresses = (ctypes.c_uint64 * len(ranges))(*(address for address, _ in ranges))
        sizes = (ctypes.c_size_t * len(ranges))(*(size for _, size in ranges))
        return int(self._discard(addresses, sizes, len(ranges), 0, stream))
