"""How a file is shown in a report, and text that is harmless on a terminal. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable

from leadline.analysis.origin import Origin, origin, package_path

_MOST_FOLDERS = 16  # of a short name; a file from someone else may hold a path of a million folders


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
    return {file: unique.get(file) or _below(file, base) or package_path(file) or file for file in distinct}


def _below(file: str, base: str) -> str:
    """`file` relative to the folder `base`; empty where it is not the user's code below it."""
    folder = base.rstrip("/") + "/"
    return file[len(folder) :] if base and file.startswith(folder) and origin(file) == Origin.USER else ""


def _ends(file: str) -> list[str]:
    """Ends of the path that a person can read, the shortest first; `__init__.py` says nothing without its folder."""
    parts = file.split("/")
    ends = ["/".join(parts[i:]) for i in range(len(parts) - 1, max(len(parts) - _MOST_FOLDERS, 0) - 1, -1)]
    return ends[1:] if parts[-1].startswith("__") and len(ends) > 1 else ends


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
