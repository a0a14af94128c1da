"""Parameters as what two runs are compared by: all their bits up to a size, else numbers at equal distances of every
tensor and the norm of each; and numbers that tell how far apart two runs are.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from typing import Any

_MOST_NUMBERS = 1 << 18
"""Of all parameters, how many are kept to tell how far apart two runs are."""
_LEAST_NUMBERS = 8
"""Of every tensor."""


def of_tensors(parameters: Sequence[Any], most_bytes: int) -> dict[str, Any]:
    """Torch's. `digest`: of all bits, or of the numbers that are compared; `norms`: only where not all are."""
    import torch

    found: dict[str, Any] = {"parameters": sum(one.numel() for one in parameters), "digest": ""}
    digest = hashlib.blake2b(digest_size=16)
    total = found["bytes"] = sum(one.numel() * one.element_size() for one in parameters)
    try:
        if total <= most_bytes:
            for one in parameters:
                digest.update(one.cpu().contiguous().view(-1).view(torch.uint8).numpy())
            return found | {"digest": digest.hexdigest()}
    except (RuntimeError, ImportError):  # a type that NumPy has not, or no NumPy
        pass
    numbers = sampled_tensors(parameters) or array("d")
    digest.update(numbers.tobytes())
    norms = [float(torch.linalg.vector_norm(one.float(), dtype=torch.float64)) for one in parameters]
    return found | {"digest": digest.hexdigest(), "compared": len(numbers), "norms": norms}


def sampled_tensors(parameters: Sequence[Any]) -> array[float] | None:
    """Numbers at equal distances, of every parameter some."""
    sizes = [one.numel() for one in parameters]
    if not sum(sizes):
        return None
    found = array("d")
    for one, every in zip(parameters, _distances(sizes), strict=True):
        found.extend(one.flatten()[::every].double().cpu().tolist())
    return found


def of_arrays(output: Any, most_bytes: int) -> dict[str, Any]:
    """JAX's: the arrays that the last step returned."""
    import numpy

    leaves = _arrays(output)
    total = sum(int(one.nbytes) for one in leaves)
    found: dict[str, Any] = {"parameters": sum(int(one.size) for one in leaves), "bytes": total}
    digest = hashlib.blake2b(digest_size=16)
    if total <= most_bytes:
        for one in leaves:
            digest.update(numpy.ascontiguousarray(one).tobytes())
        return found | {"digest": digest.hexdigest()}
    numbers = sampled_arrays(output) or array("d")
    digest.update(numbers.tobytes())
    norms = [float((one.astype("float32") ** 2).sum()) ** 0.5 for one in leaves if _is_float(one)]
    return found | {"digest": digest.hexdigest(), "compared": len(numbers), "norms": norms}


def sampled_arrays(output: Any) -> array[float] | None:
    """Of the arrays of floats that a program returned."""
    import numpy

    leaves = [one for one in _arrays(output) if _is_float(one)]
    sizes = [int(one.size) for one in leaves]
    if not sum(sizes):
        return None
    found = array("d")
    for one, every in zip(leaves, _distances(sizes), strict=True):
        found.extend(numpy.asarray(one.reshape(-1)[::every], dtype=numpy.float64).tolist())
    return found


def living_arrays() -> list[Any] | None:
    """All arrays of floats that a program of JAX holds, in an order that rounding does not change; None without JAX."""
    import sys

    jax: Any = sys.modules.get("jax")
    if jax is None or not hasattr(jax, "live_arrays"):
        return None
    found = [one for one in jax.live_arrays() if _is_float(one) and one.size and not one.is_deleted()]
    return sorted(found, key=lambda one: (one.shape, str(one.dtype), f"{float(abs(one).sum()):.2e}"))


def _distances(sizes: Sequence[int]) -> list[int]:
    every = max(sum(sizes) // _MOST_NUMBERS, 1)
    return [min(every, max(size // _LEAST_NUMBERS, 1)) for size in sizes]


def _arrays(output: Any) -> list[Any]:
    """Random keys as the numbers that they are."""
    import jax
    import numpy

    found: list[Any] = []
    for leaf in jax.tree_util.tree_leaves(output):
        if hasattr(leaf, "dtype") and str(leaf.dtype).startswith("key<"):
            found.append(jax.random.key_data(leaf))
        else:
            found.append(leaf if hasattr(leaf, "reshape") else numpy.asarray(leaf))
    return found


def _is_float(leaf: Any) -> bool:
    return str(leaf.dtype).startswith(("float", "bfloat"))
