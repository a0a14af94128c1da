"""What a recorder leaves: raw files and `recording.json`, which says how to read them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

DESCRIPTION = "recording.json"


@dataclass
class Recording:
    """The contents of `recording.json`. Times are CLOCK_MONOTONIC."""

    source: str
    """`tracefs`, `perf`, `counters` or `nothing`."""
    level: str
    from_ns: int = 0
    until_ns: int = 0
    ahead_ns: int = 0
    """How far the program's CLOCK_MONOTONIC is ahead of the machine's, which raw files have (a time namespace)."""
    lost: int = 0
    """Events that the kernel counted and could not keep."""
    sentences: list[str] = field(default_factory=list)
    """What this source cannot tell, and why no better one was used."""
    details: dict[str, Any] = field(default_factory=dict)
    """What only this source has: formats of events, names of threads, counters."""

    def write(self, folder: Path) -> None:
        """Raises OSError."""
        (folder / DESCRIPTION).write_text(json.dumps(asdict(self)), encoding="utf-8")


class Refused(Exception):
    """This machine does not permit a source; the message is the rest of a sentence after its name."""
