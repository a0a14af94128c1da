"""What is kept of an out-of-memory: that it was one, what it said, and torch's own snapshot of the device's allocator.

Who holds what is in the profile: memory is booked on call paths all the time, and the moment of the peak is the moment
when the allocation failed. Promises: the program's own error and hooks are untouched, and nothing here raises.
Facts about torch: `_snapshot` has stacks only where `_record_memory_history` ran before; the observer is called by the
allocator before the exception, must not use the device, and cannot be detached.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from leadline._output import replacing
from leadline.capture.config import VARIABLES
from leadline.capture.messages import say

SNAPSHOT_SUFFIX = ".snapshot.pickle"
MAX_ENTRIES = 100_000  # of the allocator's history, each of which may take kilobytes
_PAGE_S = 60
_CPU_SIGNS = ("DefaultCPUAllocator: can't allocate memory", "DefaultCPUAllocator: not enough memory", "out of memory")
_Hook = Callable[[type[BaseException], BaseException, TracebackType | None], Any]


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether this error says that memory is out: torch's own type, torch's RuntimeError for the CPU, or Python's."""
    if error is None:
        return False
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in _CPU_SIGNS)


class MemoryWatch:
    """One per profiler. `happened` is called with the error, once, before the program's own hook for errors."""

    def __init__(self, happened: Callable[[BaseException], object], history: bool) -> None:
        self._happened = happened
        self._before: _Hook | None = None
        self._history = history and _cuda() is not None
        self.snapshot: dict[str, Any] | None = None
        """The allocator as it was when a device ran out of memory."""

    def install(self) -> None:
        """Watch errors that nobody catches, and begin the allocator's history where that was asked for."""
        self._before, sys.excepthook = sys.excepthook, self._hook
        cuda = _cuda()
        if self._history and cuda is not None:
            try:
                cuda.memory._record_memory_history(max_entries=MAX_ENTRIES, stacks="python")
                self._observe()
            except Exception as error:
                self._history = False
                say(f"this torch keeps no history of its allocator ({error!r}).")

    def uninstall(self) -> None:
        """Undo `install`; a hook that was put over ours since stays, and calls ours in vain."""
        if self._before is not None and sys.excepthook == self._hook:
            sys.excepthook = self._before
        self._happened = _nothing
        if self._history:
            with contextlib.suppress(Exception):
                _cuda().memory._record_memory_history(enabled=None)
            self._history = False

    def keep(self, path: Path) -> Path | None:
        """Write the allocator's state, as it was when memory was out or as it is now; None where there is none."""
        snapshot = self.snapshot if self.snapshot is not None else _taken()
        if snapshot is None:
            return None
        try:
            with replacing(path) as file:
                pickle.dump(snapshot, file)
        except (OSError, pickle.PicklingError) as error:
            say(f"the snapshot of the allocator could not be written: {error}.")
            return None
        return path

    def _observe(self) -> None:
        import torch

        attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
        if attach is not None:
            attach(self._out_of_device_memory)

    def _out_of_device_memory(self, device: int, asked: int, allocated: int, free: int) -> None:
        if self._history and self.snapshot is None:
            with contextlib.suppress(Exception):
                self.snapshot = _taken()

    def _hook(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        try:
            if is_out_of_memory(error):
                self._happened(error)
        except Exception as ours:
            say(f"the report of the out-of-memory was not made ({ours!r}).")
        (self._before or sys.__excepthook__)(kind, error, traceback)


def write_page(path: Path) -> Path | None:
    """Have the summary of a profile written beside it, by a process of its own since this one has no memory left; None
    where that fails."""
    page = path.with_suffix(".oom.md")
    command = [sys.executable, "-m", "leadline", "summary", str(path), "-o", str(page)]
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    try:
        done = subprocess.run(command, env=environment, timeout=_PAGE_S, capture_output=True, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return page if done.returncode == 0 else None


def _cuda() -> Any:
    torch: Any = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_available() else None


def _taken() -> dict[str, Any] | None:
    cuda = _cuda()
    if cuda is None:
        return None
    found: dict[str, Any] = cuda.memory._snapshot()
    return found


def _nothing(error: BaseException) -> None:
    pass
