"""Files that a package manager installed into a folder that does not say so: `pip install --target lib` puts packages
beside a program, with the list of their files (RECORD) that every installed package has.
"""

from __future__ import annotations

import os
from pathlib import Path

_DEEPEST = 8
"""Folders from a package's own to that of its deepest file."""


class Installed:
    """Lists of files, each folder read once; not to be asked of files in site-packages, which are many."""

    def __init__(self) -> None:
        self._paths: dict[str, str] = {}
        self._recorded: dict[str, frozenset[str]] = {}

    def path(self, file: str) -> str:
        """The part of the path that names library code, from its package on; empty for code that nobody installed, and
        where the file does not exist."""
        if file not in self._paths:
            self._paths[file] = self._path(file)
        return self._paths[file]

    def _path(self, file: str) -> str:
        folder = file
        for _ in range(_DEEPEST):
            folder = os.path.dirname(folder)  # noqa: PTH120  # of every file of a profile
            if not folder or folder == "/":
                break
            relative = file[len(folder) + 1 :]
            if relative in self._files_of(folder):
                return relative
        return ""

    def _files_of(self, folder: str) -> frozenset[str]:
        if folder not in self._recorded:
            self._recorded[folder] = frozenset(_read(folder))
        return self._recorded[folder]


def _read(folder: str) -> set[str]:
    try:
        packages = [name for name in os.listdir(folder) if name.endswith(".dist-info")]  # noqa: PTH208
    except OSError:
        return set()
    found: set[str] = set()
    for name in packages:
        try:
            text = Path(folder, name, "RECORD").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        found |= {line.partition(",")[0] for line in text.splitlines()}
    return found
