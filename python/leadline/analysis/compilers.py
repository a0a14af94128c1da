"""Which compilers a program's frameworks have, so that advice is in its author's own terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_BY_PROVIDER = {
    "torch": ("torch.compile", "TORCHINDUCTOR_CACHE_DIR"),
    "jax": ("jax.jit", "jax_compilation_cache_dir"),
    "tensorflow": ("tf.function", ""),
}


def compilers(meta: Mapping[str, Any]) -> str:
    """`torch.compile`, `jax.jit` and the like, of the frameworks that were measured; torch's where none is known."""
    return _joined(meta, 0)


def caches(meta: Mapping[str, Any]) -> str:
    """The settings that keep compiled code between runs; empty where a framework has none."""
    return _joined(meta, 1)


def _joined(meta: Mapping[str, Any], which: int) -> str:
    told = meta.get("available")
    available = told if isinstance(told, Mapping) else {}
    measured = [name for name in _BY_PROVIDER if isinstance(one := available.get(name), Mapping) and one.get("ok")]
    return " or ".join(word for name in measured or ["torch"] if (word := _BY_PROVIDER[name][which]))
