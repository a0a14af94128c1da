"""All remedies, found by name; one file each. A new one is a file in `shipped` and a line in `SHIPPED`.

Others bring theirs as a file that defines subclasses of `Remedy`.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
from pathlib import Path

from leadline.remedies.base import Remedy, RemedyError

SHIPPED = {
    "autocast": "autocast",
    "fused_optimizer": "optimizers",
    "foreach_optimizer": "optimizers",
    "set_to_none": "set_to_none",
    "compile": "compiled",
    "channels_last": "channels_last",
    "workers": "loaders",
    "persistent_workers": "loaders",
    "pin_memory": "loaders",
    "prefetch_factor": "loaders",
    "batch": "batch",
    "num_threads": "threads",
    "sdpa": "attention",
    "no_dropout": "dropout",
    "inference_mode": "inference",
    "no_anomaly": "anomaly",
    "gc_freeze": "garbage",
    "float32_matmul_precision": "matmul_precision",
    "tf32": "matmul_precision",
    "cudnn_benchmark": "cuda",
    "expandable_segments": "cuda",
    "malloc": "malloc",
    "ddp_static_graph": "ddp",
    "gradient_as_bucket_view": "ddp",
    "bucket_cap_mb": "ddp",
    "jax_matmul_precision": "jax_precision",
    "donation": "donation",
    "jit": "jax_jit",
}
"""Name of a remedy: its module in `shipped`."""


def names() -> tuple[str, ...]:
    return tuple(SHIPPED)


def shipped() -> list[type[Remedy]]:
    """All that Leadline ships, in the order of `SHIPPED`."""
    return [_class(name) for name in SHIPPED]


def find(name: str, value: str, file: str = "") -> Remedy:
    """The remedy of that name, of the user's `file` where one is given. Raises RemedyError."""
    if file:
        for one in of_file(file):
            if one.name == name:
                return one(value)
    return _class(name)(value)


def parse(text: str) -> list[tuple[Remedy, str]]:
    """`fused_optimizer`, `workers=4`, or `mine.py` with the remedies that it defines: (remedy, file). Raises
    RemedyError."""
    if text.endswith(".py"):
        return [(one(), text) for one in of_file(text)]
    name, _, value = text.partition("=")
    if name.endswith(".py") or ":" in name:
        file, _, inner = name.partition(":")
        return [(find(inner, value, file), file)]
    return [(find(name, value), "")]


def of_file(file: str) -> list[type[Remedy]]:
    """The remedies that a user's file defines. Raises RemedyError where it cannot be read or defines none."""
    path = Path(file)
    if not path.is_file():
        raise RemedyError(f"Cannot read the fix {file}: there is no such file.")
    name = f"leadline_remedy_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise RemedyError(f"Cannot read the fix {file}: it is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise RemedyError(f"Cannot read the fix {file}: {type(error).__name__}: {error}.") from error
    found = [
        one
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, Remedy) and one.__module__ == name and hasattr(one, "name")
    ]
    if not found:
        raise RemedyError(f"{file} defines no fix; write a class with `leadline.remedies.Remedy` as its base.")
    return found


def _class(name: str) -> type[Remedy]:
    if name not in SHIPPED:
        near = difflib.get_close_matches(name, SHIPPED, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else "`leadline try --list` lists them."
        raise RemedyError(f"There is no fix {name!r}; {hint}")
    module = importlib.import_module(f"leadline.remedies.shipped.{SHIPPED[name]}")
    for one in vars(module).values():
        if isinstance(one, type) and issubclass(one, Remedy) and vars(one).get("name") == name:
            return one
    raise RemedyError(f"The fix {name!r} is not in {module.__name__}.")
