"""Which files of a trace are Python's own: programs are called profile.py and trace.py too, and lie in folders called
code, so a name says nothing by itself.

A file is the standard library's where that has a file at this place, and most of the functions that the trace names in
it are there, near their lines. Releases of Python move functions, by less than most are apart in a file. The body of a
module, an expression and `__init__` tell nothing.
"""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Iterable
from pathlib import Path

_DEFINITION = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)")
_NEAR_LINES, _NEAR_SHARE = 60, 0.35
_UNTELLING = re.compile(r"^(<.*>|__(init|call|new)__)$")


def standard_files(functions: Iterable[tuple[str, str, int]]) -> frozenset[str]:
    """The files that are the standard library's, of (file relative to its folder, function, first line)."""
    by_file: dict[str, set[tuple[str, int]]] = {}
    for file, function, line in functions:
        by_file.setdefault(file, set()).add((function.rpartition(".")[2], line))
    return frozenset(file for file, named in by_file.items() if _is_standard(file, named))


def _is_standard(file: str, named: set[tuple[str, int]]) -> bool:
    place = Path(sysconfig.get_path("stdlib"), file)
    if ".." in place.parts or not place.is_file():
        return False
    defined: dict[str, list[int]] = {}
    for number, line in enumerate(place.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if found := _DEFINITION.match(line):
            defined.setdefault(found[1], []).append(number)
    telling = [(function, line) for function, line in named if not _UNTELLING.match(function)]
    if not telling:
        return "/" in file
    there = sum(
        any(abs(line - one) <= max(_NEAR_LINES, _NEAR_SHARE * one) for one in defined.get(function, ()))
        for function, line in telling
    )
    return 2 * there >= len(telling)
