"""What an installation has beside the package's native module: libraries that are loaded by name, texts for devices."""

from __future__ import annotations

import importlib
from pathlib import Path

ACCESSES = "libleadline_accesses.so"
"""native/accesses: counts accesses and watches pages."""
MANAGED = "libleadline_managed.so"
"""native/managed: torch's segments in managed memory."""


def installed(name: str) -> Path:
    """Where it is, or would be."""
    native = importlib.import_module("leadline._native")
    return Path(str(native.__file__)).parent / name


def why_missing(name: str) -> str:
    """That it is not there and what to do, or empty."""
    return "" if installed(name).is_file() else f"this installation has no {name}; install Leadline from its wheel"
