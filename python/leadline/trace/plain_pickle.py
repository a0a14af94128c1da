"""Pickles of somebody else as data: numbers, texts, lists and mappings, and nothing else is ever made."""

from __future__ import annotations

import gc
import pickle
from typing import Any, BinaryIO

DAMAGE = (pickle.UnpicklingError, EOFError, ValueError, IndexError, KeyError, AttributeError, TypeError, MemoryError)
"""What a damaged or a foreign pickle may raise."""


class NotPlainError(ValueError):
    """It holds an object; the message names its class."""


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise NotPlainError(f"it holds a {module}.{name}, which no snapshot does")


def load_plain(stream: BinaryIO) -> Any:
    """Raises NotPlainError, and what `DAMAGE` names."""
    collected = gc.isenabled()
    gc.disable()  # nothing that is made here refers to itself, and looking for that takes as long as reading
    try:
        return _Plain(stream).load()
    finally:
        if collected:
            gc.enable()
