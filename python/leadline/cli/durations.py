"""Lengths of time on the command line: `30`, which is seconds, or `30s`, `2min`, `1h30min`."""

from __future__ import annotations

import argparse
import re

from leadline.capture.durations import seconds
from leadline.capture.errors import ProfileError

_PLAIN = re.compile(r"[-+]?\d*\.?\d+")


def duration(text: str) -> float:
    """Seconds of a length of time; a plain number is seconds. The `type` of an option of argparse."""
    if _PLAIN.fullmatch(text):
        return float(text)
    try:
        return seconds(text, "the time")
    except ProfileError as error:
        raise argparse.ArgumentTypeError(str(error).rstrip(".")) from None
