"""Whose code a Python frame is, and how its file is shown: the report names the user's own lines before anyone else's.

Decided from file names only, because a profile is read where its program may not exist. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum


class Origin(IntEnum):
    """Whose code it is; the larger the number, the more a user can do about it."""

    RUNTIME = 0  # the interpreter and its standard library, frozen or built-in code
    FRAMEWORK = 1  # torch, NumPy and their like, and Leadline itself
    PACKAGE = 2  # anything else that was installed
    USER = 3


_FRAMEWORKS = frozenset(
    [
        *("torch", "torchvision", "torchaudio", "torchgen", "functorch", "triton", "nvidia", "cupy"),
        *("jax", "jaxlib", "flax", "optax", "tensorflow", "keras", "numpy", "scipy"),
        *("leadline", "pytest", "_pytest", "pluggy"),
    ]
)
_INSTALLED = re.compile(r"(?:^|/)(?:site|dist)-packages/(?P<package>[^/]+)")
_STANDARD_LIBRARY = re.compile(r"(?:^|/)lib(?:64)?/python\d+(?:\.\d+)?t?/(?P<rest>.*)")
_OWN_CODE = re.compile(r"(?:^|/)leadline/(?:capture/|_autostart\.py$|_native)")
_DEMO = re.compile(r"(?:^|/)leadline/demo/[^/]+\.py$")  # stands for a user's program, wherever it is installed


def origin(file: str) -> Origin:
    """Whose code lives in `file`. Code from stdin, `exec` or a notebook cell counts as the user's."""
    path = file.replace("\\", "/")
    if not path or path.startswith("<frozen ") or path in ("<string>", "<built-in>", "~"):
        return Origin.RUNTIME
    if _DEMO.search(path):
        return Origin.USER
    installed = _INSTALLED.search(path)
    if installed:
        package = installed["package"].removesuffix(".py").lower()
        return Origin.FRAMEWORK if package in _FRAMEWORKS else Origin.PACKAGE
    if _OWN_CODE.search(path):
        return Origin.FRAMEWORK
    return Origin.RUNTIME if _STANDARD_LIBRARY.search(path) else Origin.USER


def is_library(file: str) -> bool:
    """Whether `--hide-library-frames` hides Python frames of this file."""
    return origin(file) != Origin.USER


def short_names(files: Iterable[str], base: str = "") -> dict[str, str]:
    """A short name per file: the user's relative to the folder `base`, or else the shortest end of the path that no
    other
    user file shares; others from their package on."""
    distinct = sorted(set(files))
    outside = [file for file in distinct if origin(file) == Origin.USER and not _below(file, base)]
    ends: dict[str, int] = {}
    for file in outside:
        for end in _ends(file):
            ends[end] = ends.get(end, 0) + 1
    unique = {file: next((end for end in _ends(file) if ends[end] == 1), file) for file in outside}
    return {file: unique.get(file) or _below(file, base) or _library_name(file) for file in distinct}


def _below(file: str, base: str) -> str:
    """`file` relative to the folder `base`; empty where it is not the user's code below it."""
    folder = base.rstrip("/") + "/"
    return file[len(folder) :] if base and file.startswith(folder) and origin(file) == Origin.USER else ""


def _ends(file: str) -> list[str]:
    """Ends of the path, the shortest first; `__init__.py` says nothing without its folder."""
    parts = file.split("/")
    ends = ["/".join(parts[i:]) for i in range(len(parts) - 1, -1, -1)]
    return ends[1:] if parts[-1].startswith("__") and len(ends) > 1 else ends


def _library_name(file: str) -> str:
    path = file.replace("\\", "/")
    installed = _INSTALLED.search(path)
    if installed:
        return path[installed.start("package") :]
    standard = _STANDARD_LIBRARY.search(path)
    return standard["rest"] if standard else file


def visible(text: str) -> str:
    """`text` on one line and harmless to a terminal: control, format and line-separating characters become escapes."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    code = ord(character)
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    if character in named:
        return named[character]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
