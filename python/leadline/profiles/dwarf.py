"""Source lines and inlined functions of native code, from debug information (DWARF).

The library `symbolic` reads it, which is the extra `lines`; without it there are none.

Debug information lies in the file itself, or in a file of its own: `/usr/lib/debug/.build-id/ab/cdef.debug`, or the
name that the section `.gnu_debuglink` gives, beside the file or below `/usr/lib/debug`, or on a debuginfod server.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leadline._dataclass import dataclass
from leadline.profiles.debuginfod import DebugServers
from leadline.profiles.elf import ElfError, ElfFile

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


def debug_lines(files: Sequence[Path]) -> DebugLines | None:
    """Of the first file that has debug information; None where none has any, and without `symbolic`."""
    try:
        from symbolic.debuginfo import Archive
    except ImportError:
        return None
    for file in files:
        try:
            for found in Archive.open(str(file)).iter_objects():
                if found.features & {"debug"}:
                    return DebugLines(found.make_symcache())
        except Exception:  # torn, or of a kind that the library does not know
            continue
    return None


def debug_file(elf: ElfFile, folders: Sequence[Path] = (), servers: DebugServers | None = None) -> ElfFile | None:
    """What was split off the file when it was stripped: on this machine, or from a server. The caller closes it."""
    for candidate in _elsewhere(elf.path, elf.build_id, elf.debug_link, folders):
        if found := _of_the_same(candidate, elf.build_id):
            return found
    if servers is None or not elf.build_id or elf.has_debug_information:
        return None
    fetched = servers.file(elf.build_id, "debuginfo")
    return _of_the_same(fetched, elf.build_id) if fetched else None


def _of_the_same(candidate: Path, build_id: str) -> ElfFile | None:
    """A file of debug information belongs to the file of the same build id."""
    if not candidate.is_file():
        return None
    try:
        found = ElfFile(candidate)
    except ElfError:
        return None
    if not build_id or found.build_id == build_id:
        return found
    found.close()
    return None


def _elsewhere(path: Path, build_id: str, link: str, folders: Sequence[Path]) -> list[Path]:
    by_id = [DEBUG_FOLDER / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"] if len(build_id) > 2 else []
    names = [link] if link and "/" not in link else []
    beside = [folder / name for name in names for folder in (path.parent, path.parent / ".debug", *folders)]
    return [*by_id, *beside, *(DEBUG_FOLDER / path.parent.relative_to("/") / name for name in names)]
