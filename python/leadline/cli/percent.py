"""Options that are a share."""

from __future__ import annotations

from leadline.capture.budget import parse_percent
from leadline.cli.errors import CommandError


def percent(option: str, text: str, example: str) -> float:
    """Of the option's value; 0 where it was not given. Raises CommandError."""
    try:
        return parse_percent(text) if text else 0.0
    except ValueError:
        raise CommandError(f"Cannot read {option} {text!r}; write a share such as {example}.") from None
