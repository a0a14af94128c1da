"""The one way capture speaks to the user: a sentence on stderr, never an exception, never on stdout."""

from __future__ import annotations

import contextlib
import sys


def say(sentence: str) -> None:
    """Print `leadline: sentence` on stderr. A closed or missing stderr is not the program's problem."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"leadline: {sentence}\n")
        sys.stderr.flush()
