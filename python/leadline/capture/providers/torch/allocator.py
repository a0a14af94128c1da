"""What torch's allocator of device memory says of itself while the trace window is open: bytes and blocks in use, what
it holds of the device, its pools of small and large blocks, what was asked for, and how scattered what is free lies.

A thread of its own asks (some 30 µs of Python, torch's counters are kept anyway). Where a window is long it asks less
often, so what is kept is bounded. The list of blocks, which takes milliseconds, is looked at when a window opens and
when the session asks for the record.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from leadline._own_thread import Flag, OwnThread

EVERY_S = 0.005
MOST_LOOKS = 4_096
_SERIES = {
    "bytes in use": ("allocated_bytes", "all"),
    "bytes reserved": ("reserved_bytes", "all"),
    "bytes requested": ("requested_bytes", "all"),
    "bytes of free parts of used segments": ("inactive_split_bytes", "all"),
    "blocks in use": ("allocation", "all"),
    "segments": ("segment", "all"),
    "small pool: bytes in use": ("allocated_bytes", "small_pool"),
    "small pool: bytes reserved": ("reserved_bytes", "small_pool"),
    "small pool: blocks in use": ("allocation", "small_pool"),
    "large pool: bytes in use": ("allocated_bytes", "large_pool"),
    "large pool: bytes reserved": ("reserved_bytes", "large_pool"),
    "large pool: blocks in use": ("allocation", "large_pool"),
}
"""Ours, and where torch has it (`torch.cuda.memory_stats`)."""
_LIVE = ("active_allocated", "active_awaiting_free", "active_pending_free")


class AllocatorWatch:
    """One per session with a trace window. `is_open` says whether the window is."""

    def __init__(self, is_open: Callable[[], bool]) -> None:
        self._is_open = is_open
        self._cuda: Any = None
        self._ended = Flag()
        self._thread: OwnThread | None = None
        self._every_s = EVERY_S
        self._was_open = False
        self._looks: dict[int, list[tuple[int, ...]]] = {}
        self._free: dict[int, list[tuple[int, int, int]]] = {}

    def install(self, torch: ModuleType) -> None:
        """Begin to look, where this torch is built for devices."""
        cuda, version = getattr(torch, "cuda", None), getattr(torch, "version", None)
        built = getattr(version, "cuda", None) or getattr(version, "hip", None)
        if built and hasattr(cuda, "memory_stats_as_nested_dict"):  # whether there are devices is not asked: it sets up
            self._cuda = cuda
            self._thread = OwnThread(self._run)
            self._thread.start()

    def uninstall(self) -> None:
        """Look no more."""
        self._ended.set()
        self._thread = None

    def forked(self) -> None:
        """A child has no such thread, and no device that it could use."""
        self._looks, self._free, self._cuda, self._thread = {}, {}, None, None

    def status(self) -> dict[str, Any]:
        """For the process's record; empty where nothing was seen."""
        if self._was_open:
            self._look_at_blocks()
        found = []
        for device, looks in self._looks.items():
            times, *columns = zip(*looks, strict=True)
            values = {name: list(column) for name, column in zip(_SERIES, columns, strict=True)}
            values["bytes free"] = [
                held - used for held, used in zip(values["bytes reserved"], values["bytes in use"], strict=True)
            ]
            values["bytes wasted"] = [
                used - asked for used, asked in zip(values["bytes in use"], values["bytes requested"], strict=True)
            ]
            found.append(_history(device, times, values))
        for device, seen in self._free.items():
            times, largest, scattered = zip(*seen, strict=True)
            found.append(
                _history(
                    device,
                    times,
                    {"bytes of the largest free block": list(largest), "fragmentation, per mille": list(scattered)},
                )
            )
        return {"allocators": found} if found else {}

    def sample(self) -> None:
        """Ask once, where the window is open and the program has used its devices."""
        is_open = self._is_open()
        if is_open and self._cuda.is_initialized():
            if not self._was_open:
                self._look_at_blocks()
            self._look_at_counters()
        self._was_open = is_open

    def _look_at_counters(self) -> None:
        for device in range(self._cuda.device_count()):
            stats = self._cuda.memory_stats_as_nested_dict(device)
            if not stats:
                continue  # nothing of it is in use
            looks = self._looks.setdefault(device, [])
            values = (int(stats.get(kind, {}).get(pool, {}).get("current", 0)) for kind, pool in _SERIES.values())
            looks.append((time.monotonic_ns(), *values))
            if len(looks) > MOST_LOOKS:
                del looks[1::2]
                self._every_s *= 2

    def _look_at_blocks(self) -> None:
        with contextlib.suppress(Exception):  # a list of torch's own making
            sizes: dict[int, list[int]] = {}
            for segment in self._cuda.memory_snapshot():
                mine = sizes.setdefault(int(segment.get("device", 0)), [])
                mine += [int(block["size"]) for block in segment["blocks"] if block["state"] not in _LIVE]
            now = time.monotonic_ns()
            for device, free in sizes.items():
                total, largest = sum(free), max(free, default=0)
                scattered = round(1000 * (1 - largest / total)) if total else 0
                self._free.setdefault(device, []).append((now, largest, scattered))

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            with contextlib.suppress(Exception):
                self.sample()


def _history(device: int, times: tuple[int, ...], values: dict[str, list[int]]) -> dict[str, Any]:
    """As `leadline.trace.allocator` reads it."""
    return {"device": device, "name": "torch's allocator", "time_ns": list(times), "values": values}
