"""Text as a stream can take it: what an ASCII or Latin-1 terminal cannot show becomes plain characters."""

from __future__ import annotations

from typing import TextIO

_PLAIN = str.maketrans({"›": ">", "·": "-", "µ": "u", "×": "x", "…": "~", "←": "<"})


def encodable(text: str, stream: TextIO) -> str:
    """`text` in what `stream` can take, never an error; what has no plain character is a question mark."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
        return text
    except (UnicodeEncodeError, LookupError):
        known = encoding if _known(encoding) else "ascii"
        return text.translate(_PLAIN).encode(known, "replace").decode(known)


def _known(encoding: str) -> bool:
    try:
        "".encode(encoding)
        return True
    except LookupError:
        return False
