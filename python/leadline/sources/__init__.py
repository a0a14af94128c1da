"""Which source files may be read for a profile: the one answer for reports, pages, servers, findings and agents.

A profile may come from a stranger, and names whatever files it likes. Text is read only of a regular file with the
ending of a source, and only where it is what ran (its SHA-256 stands in the profile) or lies below a folder of the
reader's choice: the working directory, or what LEADLINE_SOURCE_ROOT names (`--source-root`). A symbolic link counts as
what it leads to. Standard library only.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from leadline._dataclass import dataclass

ROOT_VARIABLE: Final = "LEADLINE_SOURCE_ROOT"
_PYTHON = (".py", ".pyi", ".pyx", ".pxd")
_NATIVE = (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".inc", ".inl", ".rs", ".jl", ".mojo")
_KERNELS = (".cu", ".cuh", ".hip", ".ll", ".mlir", ".ptx")
SUFFIXES: Final = frozenset((*_PYTHON, *_NATIVE, *_KERNELS))
LARGEST_BYTES: Final = 4 << 20
_SYSTEM = ("/proc", "/sys", "/dev")


@dataclass(frozen=True)
class SourceText:
    """A file as it was read."""

    path: Path
    data: bytes
    sha256: str
    changed_ns: int
    """When it was last written."""
    known: bool
    """Whether the profile holds this very hash."""
    changed: bool
    """Whether the profile holds another hash of it: it is not what ran, and `data` is empty."""


def source_roots() -> tuple[Path, ...]:
    """Folders whose sources the reader lets profiles show: the working directory, or those that are named instead."""
    named = os.environ.get(ROOT_VARIABLE, "")
    try:
        return tuple(Path(one).resolve() for one in named.split(os.pathsep) if one) or (Path.cwd().resolve(),)
    except OSError:  # the working directory is gone
        return ()


def readable_source(
    file: str, cwd: str, hashes: Mapping[str, str], roots: tuple[Path, ...] | None = None
) -> SourceText | None:
    """The text of `file`, which ran in the folder `cwd`; None where it may not or cannot be read. `hashes`: SHA-256 by
    file as the profile has them; an empty one matches nothing."""
    if not file or file.startswith("<") or "\0" in file:
        return None
    allowed = source_roots() if roots is None else roots
    place = Path(cwd, file) if cwd else Path(file)
    candidates = [place] if place.is_absolute() else [root / place for root in allowed]
    if (cwd and not Path(file).is_absolute()) or (cwd and file.startswith(cwd.rstrip("/") + "/")):
        inner = os.path.relpath(str(place), cwd)
        candidates += [root / inner for root in allowed]
    known = hashes.get(file, hashes.get(os.path.normpath(str(place))))
    for candidate in dict.fromkeys(candidates):
        if (found := _read(candidate, known, allowed)) is not None:
            return found
    return None


def _read(place: Path, known: str | None, roots: tuple[Path, ...]) -> SourceText | None:
    try:
        real = place.resolve(strict=True)
        if real.suffix.lower() not in SUFFIXES or str(real).startswith(tuple(f"{one}/" for one in _SYSTEM)):
            return None
        below = any(real.is_relative_to(root) for root in roots)
        if not (known or below):
            return None
        if not stat.S_ISREG(real.stat().st_mode):
            return None
        # what is opened may no longer be what was looked at: it must not block, nor be another thing
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as stream:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST_BYTES:
                return None
            data = stream.read(LARGEST_BYTES + 1)
    except (OSError, ValueError, RuntimeError):  # resolve() raises RuntimeError for a loop of links
        return None
    digest = hashlib.sha256(data).hexdigest()
    if len(data) > LARGEST_BYTES:
        return None
    same, changed = digest == known, known is not None and digest != known
    return SourceText(real, b"" if changed else data, "" if changed else digest, about.st_mtime_ns, same, changed)
