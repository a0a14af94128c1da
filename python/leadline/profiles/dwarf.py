"""Source lines and inlined functions of native code, from debug information (DWARF).

The library `symbolic` reads it, which is the extra `lines`; without it there are none.

Debug information lies in the file itself, or in a file of its own: `/usr/lib/debug/.build-id/ab/cdef.debug`, or the
name that the section `.gnu_debuglink` gives, beside the file or below `/usr/lib/debug`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEBUG_FOLDER = Path("/usr/lib/debug")


@dataclass(frozen=True)
class SourceLine:
    """One function at an address: mangled `name`, `file` and `line` (0 where unknown)."""

    name: str
    file: str
    line: int


class DebugLines:
    """Lines of one file that has debug information."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def at(self, address: int) -> list[SourceLine]:
        """The functions that an address is in, the innermost (inlined) first; empty where nothing is known."""
        try:
            found = self._cache.lookup(address)
        except Exception:  # whatever the library makes of a torn section
            return []
        return [SourceLine(one.symbol or "", one.full_path or "", int(one.line)) for one in found]


def debug_lines(path: Path, build_id: str, link: str, folders: Sequence[Path] = ()) -> DebugLines | None:
    """Of a file or of what holds its debug information; None without any, or without `symbolic`. `link`: what its
    `.gnu_debuglink` says."""
    try:
        from symbolic.debuginfo import Archive
    except ImportError:
        return None
    for candidate in (path, *_elsewhere(path, build_id, link, folders)):
        if not candidate.is_file():
            continue
        try:
            for found in Archive.open(str(candidate)).iter_objects():
                if found.features & {"debug"} and (candidate == path or _same(found, build_id)):
                    return DebugLines(found.make_symcache())
        except Exception:  # torn, or of a kind that the library does not know
            continue
    return None


def _same(found: Any, build_id: str) -> bool:
    """A file of debug information belongs to the file of the same build id."""
    return not build_id or (found.code_id or "").lower() == build_id


def _elsewhere(path: Path, build_id: str, link: str, folders: Sequence[Path]) -> list[Path]:
    by_id = [DEBUG_FOLDER / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"] if len(build_id) > 2 else []
    names = [link] if link and "/" not in link else []
    beside = [folder / name for name in names for folder in (path.parent, path.parent / ".debug", *folders)]
    return [*by_id, *beside, *(DEBUG_FOLDER / path.parent.relative_to("/") / name for name in names)]
