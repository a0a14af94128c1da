"""Programs from JAX's persistent cache: their lines are those of the source that filled the cache.

JAX leaves lines out of the key of the cache, so a program whose source has moved since is found all the same. Before
it asks the cache JAX traces and lowers the program anew, with the lines of today: what the found one has beside these
is stale. Where that is not to be had, lines outside of their function are.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_MOST_FILES = 200
_MOST_BYTES = 4 * 2**20

_LINE = re.compile(r'loc\("([^"\n]+)":(\d+):')
_FARTHEST = 30
"""Frames looked through for the program that is being compiled."""

Spans = dict[str, list[tuple[int, int]]]


def lines_of_today() -> frozenset[tuple[str, int]] | None:
    """File and line of all that the program that is being compiled on this thread was lowered from; None where this
    release does not keep it at hand."""
    frame = sys._getframe(1)
    for _ in range(_FARTHEST):
        lowered: Any = frame.f_locals.get("computation")
        if lowered is not None and hasattr(getattr(lowered, "operation", None), "get_asm"):
            text = lowered.operation.get_asm(enable_debug_info=True)
            return frozenset((file, int(line)) for file, line in _LINE.findall(text)) or None
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None


class Sources:
    """The functions of source files as they are now."""

    def __init__(self) -> None:
        self._files: dict[str, Spans | None] = {}

    def stale(self, frames: Iterable[tuple[str, str, int]]) -> set[tuple[str, int]]:
        """Of (file, function, line) those lines that are not in a function of that name today; files that cannot be
        read tell nothing."""
        found = set()
        for file, function, line in frames:
            spans = self._spans(file)
            name = function.rpartition(".")[2]
            if spans is None or name.startswith("<"):
                continue
            if not any(first <= line <= last for first, last in spans.get(name, ())):
                found.add((file, line))
        return found

    def _spans(self, file: str) -> Spans | None:
        if file not in self._files:
            self._files[file] = _functions(file) if len(self._files) < _MOST_FILES else None
        return self._files[file]


def _functions(file: str) -> Spans | None:
    try:
        path = Path(file)
        if path.stat().st_size > _MOST_BYTES:
            return None
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: Spans = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            found.setdefault(node.name, []).append((first, node.end_lineno or node.lineno))
    return found
