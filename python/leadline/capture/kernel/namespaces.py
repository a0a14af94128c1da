"""Whether the kernel's tracer and this process count threads and time alike: in namespaces of their own they do not.

The tracer has the machine's numbers of threads and the machine's clock, whoever looks. Perf events have the numbers of
whoever opens them, and the machine's clock.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from leadline.capture.kernel.mount import write
from leadline.capture.kernel.recording import Refused

_OFFSETS = Path("/proc/self/timens_offsets")
_MARKS = 5
_MOST_APART_NS = 1_000_000
_OTHER_NUMBERS = (
    "this process is in a container with its own process ids, and the tracer has the machine's ids; run "
    "leadline outside of it"
)


def monotonic_offset_ns() -> int:
    """How far this process's CLOCK_MONOTONIC is ahead of the machine's (time_namespaces(7))."""
    try:
        lines = _OFFSETS.read_text(encoding="ascii").splitlines()
        told = next(line.split() for line in lines if line.startswith("monotonic"))
        return int(told[1]) * 10**9 + int(told[2])
    except (OSError, StopIteration, ValueError, IndexError):
        return 0


def mark(instance: Path) -> tuple[int, int, int]:
    """What the tracer makes of this thread: its number there, how far our CLOCK_MONOTONIC is ahead of the tracer's time
    and how wrong that may be, in ns. The instance must keep nothing yet. Raises OSError."""
    best = None
    word = f"leadline {os.getpid()}"
    for number in range(_MARKS):
        write(instance / "tracing_on", "1")
        before = time.monotonic_ns()
        write(instance / "trace_marker", f"{word} {number}")
        after = time.monotonic_ns()
        write(instance / "tracing_on", "0")
        line = next(
            (one for one in (instance / "trace").read_text(errors="replace").splitlines() if f"{word} {number}" in one),
            "",
        )
        head = line.partition(": ")[0].split()
        if len(head) >= 3:
            seconds, _, rest = head[-1].partition(".")
            seen = int(seconds) * 10**9 + int(rest.ljust(9, "0")[:9])
            width = (after - before) // 2 + 10 ** (9 - len(rest))
            found = (width, int(head[0].rpartition("-")[2]), (before + after) // 2 - seen)
            best = found if best is None else min(best, found)
        write(instance / "trace", "")
    if best is None:
        raise OSError(0, "its marks cannot be read")
    return best[1], best[2], best[0]


def require_the_same(instance: Path) -> None:
    """Raises Refused where the tracer's threads or its clock are not those that this process knows, and OSError."""
    tid, ahead_ns, width_ns = mark(instance)
    if tid != threading.get_native_id():
        raise Refused(_OTHER_NUMBERS)
    if abs(ahead_ns - monotonic_offset_ns()) > width_ns + _MOST_APART_NS:
        raise Refused("its clock is not CLOCK_MONOTONIC")
