"""Blocks of memory that an operator really touches, by the processor's protection (native/accesses/pages.h)."""

from __future__ import annotations

import ctypes
import mmap
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.tools.installed import ACCESSES, installed, why_missing

MOST_SPANS = 256
SPAN = np.dtype([(name, "<u8") for name in ("object", "begin", "end", "uses")])
"""PagesSpan of native/accesses/pages.h; `uses`: 1 read, 2 written, 3 both, as the operator declares."""
RESULT = np.dtype(
    [(name, "<u8") for name in ("read", "written", "distinct", "first", "end", "faults", "incomplete")],
)
"""PagesResult of native/accesses/pages.h, in bytes."""
WATCHING, BUSY, NO_HANDLER = 1, 0, -1


@dataclass
class Watched:
    """What an operator declares of one object: bytes from `first` up to `end`; `base`: the object's address."""

    tensor: Any
    base: int
    first: int
    end: int
    uses: int

    def widen(self, first: int, end: int, uses: int) -> None:
        """Take another view of the object in."""
        self.first, self.end, self.uses = min(self.first, first), max(self.end, end), self.uses | uses


class PageWatch:
    """The library's watch, of which a process has one. Its functions keep the GIL."""

    def __init__(self) -> None:
        library = ctypes.PyDLL(str(installed(ACCESSES)))
        self._start: Any = library.ll_pages_start
        self.stop: Any = library.ll_pages_stop
        self.stop.restype = None
        self._begin: Any = library.ll_pages_begin
        self._begin.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
        self._end: Any = library.ll_pages_end
        self._end.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
        self._end.restype = None

    def start(self) -> bool:
        """Take the signal; False where the system refuses."""
        return bool(self._start())

    def begin(self, spans: NDArray[Any], block: int) -> int:
        """Close whole pages of the spans (SPAN); WATCHING, BUSY or NO_HANDLER."""
        return int(self._begin(spans.ctypes.data, len(spans), block))

    def end(self, count: int, sizes: NDArray[np.uint64]) -> tuple[NDArray[Any], NDArray[np.uint64]]:
        """Open all; what each span has seen (RESULT), and its distinct pages by size."""
        results = np.zeros(count, RESULT)
        pages = np.zeros((count, len(sizes)), np.uint64)
        self._end(results.ctypes.data, sizes.ctypes.data, len(sizes), pages.ctypes.data)
        return results, pages


def spans_of(watched: list[Watched]) -> NDArray[Any]:
    """As the library takes them."""
    rows = [(one.base, one.base + one.first, one.base + one.end, one.uses) for one in watched]
    return np.array(rows, SPAN)


def block_of(pages: tuple[int, ...], *, counted: bool) -> int:
    """Bytes that are opened at once: the smallest page that a tool counts in, in whole pages of the system; 64 KiB
    where none counts (a fault takes microseconds)."""
    size = min(pages, default=0) if counted else 0
    return max(mmap.PAGESIZE, -(-(size or 65536) // mmap.PAGESIZE) * mmap.PAGESIZE)


def why_not() -> str:
    """Why faults cannot be taken here, or empty."""
    return why_missing(ACCESSES) if sys.platform.startswith("linux") else "it needs Linux"
