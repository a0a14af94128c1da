"""What lines and times of a profile of XLA stand for, as the native reader gives them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

DAY_NS = 86_400 * 10**9
_ENVIRONMENT = "Task Environment"
_TID = re.compile(r"/-?(\d{1,20})(?:/|$)")


def thread_of(number: int, name: str) -> tuple[int, str, bool]:
    """Of a line of the host: the thread's number, which newer profilers make of its own, its name, and whether the
    line's name told the number."""
    told = _TID.search(name)
    return (int(told[1]) if told else number) & (2**63 - 1), name.partition("/")[0] if told else name, told is not None


def host_thread(line: tuple[int, int, str, int, int]) -> tuple[int, str] | None:
    """Number and name of a line's thread; None for a line of a device. `line`: plane, number, name, device, stream."""
    _, number, name, device, stream = line
    return None if device >= 0 or stream >= 0 else thread_of(number, name)[:2]


def origin_ns(planes: Iterable[tuple[str, Mapping[str, str]]], base_ns: int) -> int:
    """CLOCK_REALTIME at time 0 of the columns, as far as the profile says."""
    stats = next((stats for name, stats in planes if name == _ENVIRONMENT), {})
    started = whole(stats.get("profile_start_time", ""))
    return started + base_ns if started and base_ns < DAY_NS else base_ns


def whole(text: str) -> int:
    """The number, 0 where it is none."""
    return int(text) if text.isdigit() and len(text) < 20 else 0
