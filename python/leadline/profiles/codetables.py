"""Machine code in a profile: stored once per content, and the instructions of sampled functions as lines.

A profile that travels has its code with it: what no disassembler was there for when it was made can be read elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from leadline._dataclass import dataclass
from leadline.profiles.tables import Array, StringBuilder, Tables
from leadline.schema import TABLES

MOST_BYTES = 64 << 20
"""Of all machine code in one file; the smallest objects come first."""


@dataclass(frozen=True)
class CodeLine:
    """One instruction. `text` is empty where no disassembler was there, `file` where the code has no lines."""

    offset: int
    text: str
    file: str
    line: int


class CodeTables:
    """The columns while they are made; rows stand in the order of their texts, so that any merging gives the same."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.lines: dict[tuple[str, str], list[CodeLine]] = {}

    def add(self, tables: Tables) -> None:
        """What another profile holds; in any order the same comes of it."""
        text, objects, lines = tables.strings, tables["code_objects"], tables["code_lines"]
        held = tables["code_bytes"]["bytes"]
        for row, begin, size in zip(*(objects[name].tolist() for name in ("hash", "begin", "size")), strict=True):
            self.objects.setdefault(text[row], held[begin : begin + size].tobytes())
        found: dict[tuple[str, str], list[CodeLine]] = {}
        for code, function, offset, said, file, line in zip(
            *(lines[column.name].tolist() for column in TABLES["code_lines"].columns), strict=True
        ):
            one = CodeLine(offset, text[said], text[file], line)
            found.setdefault((text[code], text[function]), []).append(one)
        self._take(found)

    def join(self, other: CodeTables) -> None:
        """What was added elsewhere."""
        for code, held in other.objects.items():
            self.objects.setdefault(code, held)
        self._take(other.lines)

    def narrow(self, most_bytes: int = MOST_BYTES) -> None:
        """Forget what would not be in the file either, whatever else is joined."""
        self.objects = {code: self.objects[code] for code in fitting(self.objects, most_bytes)}

    def _take(self, found: Mapping[tuple[str, str], list[CodeLine]]) -> None:
        """Equal hashes are equal code; of a function told twice the one with more text stays."""
        for key, listed in found.items():
            known = self.lines.get(key)
            if known is None or _told(listed) > _told(known):
                self.lines[key] = listed

    def columns(self, strings: StringBuilder, most_bytes: int = MOST_BYTES) -> dict[str, dict[str, Array]]:
        """As tables, with as much code as fits."""
        kept = fitting(self.objects, most_bytes)
        sizes = np.array([len(self.objects[code]) for code in kept], "<u8")
        whole = b"".join(self.objects[code] for code in kept)
        listed = [(*key, one) for key in sorted(self.lines) for one in self.lines[key]]
        said = {
            "hash": [strings.add(code) for code, _, _ in listed],
            "function": [strings.add(function) for _, function, _ in listed],
            "offset": [one.offset for _, _, one in listed],
            "text": [strings.add(one.text) for _, _, one in listed],
            "file": [strings.add(one.file) for _, _, one in listed],
            "line": [one.line for _, _, one in listed],
        }
        return {
            "code_objects": {
                "hash": np.array([strings.add(code) for code in kept], "<u4"),
                "begin": (np.cumsum(sizes) - sizes).astype("<u8"),
                "size": sizes,
            },
            "code_bytes": {"bytes": np.frombuffer(whole, "|u1")},
            "code_lines": {
                column.name: np.array(said[column.name], column.dtype) for column in TABLES["code_lines"].columns
            },
        }


def _told(lines: list[CodeLine]) -> tuple[int, list[tuple[int, str, str, int]]]:
    """How much is said of a function; of equally much one answer."""
    return sum(bool(one.text) for one in lines), [(one.offset, one.text, one.file, one.line) for one in lines]


def fitting(objects: Mapping[str, bytes], most_bytes: int) -> list[str]:
    """Hashes of the smallest objects that fit together, in their order."""
    kept, left = [], most_bytes
    for code in sorted(objects, key=lambda code: (len(objects[code]), code)):
        if len(objects[code]) > left:
            break
        left -= len(objects[code])
        kept.append(code)
    return sorted(kept)


def merged_code(parts: Sequence[Tables], strings: StringBuilder) -> dict[str, dict[str, Array]]:
    """The tables of several profiles as one."""
    whole = CodeTables()
    for part in parts:
        whole.add(part)
    return whole.columns(strings)


def code_of(tables: Tables) -> CodeTables:
    """What one profile holds."""
    whole = CodeTables()
    whole.add(tables)
    return whole


def stored_code(tables: Tables) -> Iterable[tuple[str, bytes]]:
    """(hash, code) of every object that the profile holds."""
    return code_of(tables).objects.items()


__all__ = ["MOST_BYTES", "CodeLine", "CodeTables", "code_of", "fitting", "merged_code", "stored_code"]
