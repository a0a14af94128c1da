"""The one way capture speaks to the user: a sentence on stderr, never an exception, never on stdout."""

from __future__ import annotations

import contextlib
import sys

from leadline._output import harmless


def say(sentence: str) -> None:
    """Print `leadline: sentence` on stderr. A closed or missing stderr is not the program's problem."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        line = harmless(sentence.replace("\n", "\\n"))  # names of files may hold anything
        sys.stderr.write(f"leadline: {line}\n")
        sys.stderr.flush()
