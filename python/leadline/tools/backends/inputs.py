"""A number for what an operator was called with: equal inputs have one, by value, shape, type and place in the call."""

from __future__ import annotations

import hashlib
import importlib
from typing import Any

_HASHED = (int, float, complex, bool, str, bytes, type(None))


class InputHashes:
    """Reads every input whole, so it is as slow as memory; on a GPU every look waits for the device."""

    def __init__(self) -> None:
        torch = importlib.import_module("torch")
        self._bytes = torch.uint8
        self._random = torch.Tag.nondeterministic_seeded

    def of(self, func: Any, args: Any, kwargs: Any) -> int:
        """Never 0 but for an operator that draws random numbers, or with inputs that cannot be read."""
        if self._random in getattr(func, "tags", ()):
            return 0
        digest = hashlib.blake2b(digest_size=8)
        try:
            self._add(digest, args)
            self._add(digest, sorted(kwargs.items()))
        except (RuntimeError, TypeError, NotImplementedError):  # fake, meta and quantized tensors
            return 0
        return int.from_bytes(digest.digest(), "little", signed=True) or 1

    def _add(self, digest: Any, value: Any) -> None:
        if hasattr(value, "untyped_storage"):
            tensor = value.detach()
            digest.update(f"T{tensor.dtype}{tuple(tensor.shape)}{tensor.device}".encode())
            if tensor.numel():
                digest.update(tensor.cpu().contiguous().reshape(-1).view(self._bytes).numpy())
        elif isinstance(value, list | tuple):
            digest.update(f"L{len(value)}".encode())
            for one in value:
                self._add(digest, one)
        elif isinstance(value, _HASHED):
            digest.update(f"{type(value).__name__} {value!r};".encode())
        else:  # types, devices, layouts: their names say what they are; a generator draws random numbers
            if hasattr(value, "initial_seed"):
                raise TypeError("random numbers")
            digest.update(f"{type(value).__name__} {value};".encode())
