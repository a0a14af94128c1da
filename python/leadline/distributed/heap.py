"""What folding has let go of goes back to the system at once, so that memory is that of what is held."""

from __future__ import annotations

import ctypes

_MMAP_THRESHOLD = -3
_BYTES = 1 << 18


def give_back_at_once() -> None:
    """Blocks of a quarter of a megabyte and more are mappings of their own in this process from now on: the columns of
    folds, which else leave holes that the next ones do not fit into. Does nothing where the C library is another."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _BYTES)
