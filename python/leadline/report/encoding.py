"""Text as a stream can take it: width, colour, and plain characters for what a terminal of ASCII or Latin-1 lacks."""

from __future__ import annotations

import os
import shutil
from typing import TextIO

PLAIN_WIDTH = 100
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


def for_stream(stream: TextIO) -> tuple[int, bool]:
    """Width and whether to use colour on `stream`: its window and NO_COLOR/TERM decide."""
    terminal = stream.isatty()
    width = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns if terminal else _columns_variable()
    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return width, colour


def _columns_variable() -> int:
    stated = os.environ.get("COLUMNS", "")
    return int(stated) if stated.isdigit() and int(stated) > 0 else PLAIN_WIDTH
