"""What a phase of the loop's thread did in the trace window, as every report shows it."""

from __future__ import annotations

from leadline._dataclass import dataclass
from leadline.units import duration, share

WAIT_COLUMNS = (
    ("phase", "left"),
    ("time", "right"),
    ("running", "right"),
    ("runnable", "right"),
    ("blocked", "right"),
    ("unseen", "right"),
)


@dataclass(frozen=True)
class WaitLine:
    """Parts of `wall_ns` add up to it. `causes`: who had the core, or what was waited for, with its share; `text`: all
    of it as a sentence."""

    phase: str
    wall_ns: int
    running_ns: int
    runnable_ns: int
    blocked_ns: int
    unseen_ns: int
    causes: tuple[str, ...]
    text: str


def wait_cells(line: WaitLine) -> list[str]:
    """For WAIT_COLUMNS; empty where there is nothing of a part."""
    parts = (line.running_ns, line.runnable_ns, line.blocked_ns, line.unseen_ns)
    return [line.phase, duration(line.wall_ns), *(share(part, line.wall_ns) if part > 0 else "" for part in parts)]
