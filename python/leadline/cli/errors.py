"""How a verb says that it cannot go on: one sentence and an exit code. No imports, so that every verb can afford it."""

from __future__ import annotations

USAGE_ERROR = 2
"""Exit code for wrong arguments and for files that cannot be read or written."""

INTERNAL_ERROR = 70
"""Exit code for a fault of Leadline itself (EX_SOFTWARE of sysexits.h)."""


class CommandError(Exception):
    """Ends the command: `main` prints the sentence on stderr and leaves with `exit_code`."""

    def __init__(self, sentence: str, exit_code: int = USAGE_ERROR) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.exit_code = exit_code
