"""The kernel's events of a profile's window: which machine, which stretch of time, which threads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leadline._dataclass import replace
from leadline.profiles.profile import Profile
from leadline.trace.states import States, thread_states


def recorded(profile: Profile) -> Mapping[str, Any]:
    """What the profile says of the recording: source, level, from_ns, until_ns, lost, sentences; empty without one."""
    about = profile.meta.get("kernel")
    return about if isinstance(about, Mapping) else {}


def span_ns(profile: Profile) -> tuple[int, int]:
    """From when to when the kernel was recorded, on the clock of the events."""
    events = profile.table("kernel_events")
    about = recorded(profile)
    begin, end = about.get("from_ns"), about.get("until_ns")
    if isinstance(begin, int) and isinstance(end, int) and end >= begin > 0:
        return begin, end
    return (int(events["time_ns"][0]), int(events["time_ns"][-1])) if len(events["time_ns"]) else (0, 0)


def states_of(profile: Profile, *, every: bool = False) -> States:
    """States of the profile's own threads, or of `every` thread that the kernel's events name, as of a program that was
    killed before it had written down a thread."""
    known = sorted({thread.tid for thread in profile.threads})
    tids = None if every or not known else known
    states = thread_states(profile.table("kernel_events"), profile.tables.strings, span_ns(profile), tids)
    return replace(states, names={**{thread.tid: thread.name for thread in profile.threads}, **states.names})
