"""The text of a query and a place in it: what the parser reads words, patterns, numbers and signs with.

A word of a path ends at blank, `/`, `[`, `]`, `(`, `)` and a quote, so names of kernels with those go into quotes.
"""

from __future__ import annotations

import re

from leadline.query.errors import QueryError

_BLANK = re.compile(r"\s*")
_WORD = re.compile(r"""[^\s/\[\]()"']+""")
_NAME = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)\s*([A-Za-z%µ]*)")
_MOST_CHARACTERS = 10_000

UNITS: dict[str, tuple[float, str]] = {
    "": (1, "1"),
    "ns": (1, "ns"),
    "us": (1e3, "ns"),
    "µs": (1e3, "ns"),
    "ms": (1e6, "ns"),
    "s": (1e9, "ns"),
    "B": (1, "bytes"),
    "KB": (1e3, "bytes"),
    "MB": (1e6, "bytes"),
    "GB": (1e9, "bytes"),
    "KiB": (2**10, "bytes"),
    "MiB": (2**20, "bytes"),
    "GiB": (2**30, "bytes"),
    "%": (0.01, "%"),
}


class Scanner:
    """Every method skips blanks first, except where it says otherwise."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        if len(text) > _MOST_CHARACTERS:
            raise self.error(f"a query has at most {_MOST_CHARACTERS:,} characters")

    def error(self, problem: str, position: int | None = None) -> QueryError:
        return QueryError(problem, self.text, self.position if position is None else position)

    def skip(self) -> int:
        """Past blanks; returns the place."""
        found = _BLANK.match(self.text, self.position)
        self.position = found.end() if found else self.position
        return self.position

    @property
    def ended(self) -> bool:
        return self.skip() >= len(self.text)

    def sees(self, sign: str) -> bool:
        return self.text.startswith(sign, self.skip())

    def take(self, *signs: str) -> str:
        """The first of `signs` that stands here, or an empty string."""
        self.skip()
        for sign in signs:
            if self.text.startswith(sign, self.position):
                self.position += len(sign)
                return sign
        return ""

    def expect(self, sign: str, after: str) -> None:
        if not self.take(sign):
            raise self.error(f"{sign!r} is expected {after}")

    def name_ahead(self) -> str:
        """The name that comes next, without taking it."""
        found = _NAME.match(self.text, self.skip())
        return found[0] if found else ""

    def name(self) -> str:
        found = self.name_ahead()
        self.position += len(found)
        return found

    def keyword(self, *words: str) -> str:
        """Takes the first of `words` that stands here as a word of its own."""
        ahead = _WORD.match(self.text, self.skip())
        found = self.name_ahead()
        if found in words and (ahead is None or re.match(r"\w+", ahead[0])[0] == found):  # type: ignore[index]
            self.position += len(found)
            return found
        return ""

    def word(self) -> str:
        """A word of a path, without skipping blanks before it."""
        found = _WORD.match(self.text, self.position)
        if found is None:
            return ""
        self.position = found.end()
        return found[0]

    def quoted(self) -> str | None:
        """A text in single or double quotes (a backslash keeps the quote), without skipping blanks; None where there
        is none."""
        if self.position >= len(self.text) or self.text[self.position] not in "\"'":
            return None
        begin, quote = self.position, self.text[self.position]
        parts = []
        at = begin + 1
        while at < len(self.text) and self.text[at] != quote:
            at += self.text[at] == "\\" and self.text[at + 1 : at + 2] == quote
            parts.append(self.text[at])
            at += 1
        if at >= len(self.text):
            raise self.error("this quote is never closed", begin)
        self.position = at + 1
        return "".join(parts)

    def number(self) -> tuple[float, str] | None:
        """A number with its unit in the base of its dimension; None where there is none."""
        found = _NUMBER.match(self.text, self.skip())
        if found is None:
            return None
        unit = found[2]
        if unit not in UNITS and not self._is_keyword(unit):
            known = ", ".join(name for name in UNITS if name)
            raise self.error(f"there is no unit {unit!r}; the units are {known}", found.start(2))
        self.position = found.end(2) if unit in UNITS and unit else found.end(1)
        factor, dimension = UNITS.get(unit, (1.0, "1"))
        return float(found[1]) * factor, dimension

    @staticmethod
    def _is_keyword(word: str) -> bool:
        return word in ("and", "or", "by", "show", "sort", "top", "not")
