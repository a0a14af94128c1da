"""SQLite exports of Nsight Systems: one profile of all their processes."""

from __future__ import annotations

from leadline.profiles.merge import merge_profiles
from leadline.profiles.profile import Profile
from leadline.trace.importers.tree import profile_of
from leadline.trace.nsys import read_nsys
from leadline.trace.source import Source

NAME = "an SQLite export of Nsight Systems (nsys export --type sqlite)"


def recognises(head: bytes, source: Source) -> bool:
    """Whether a file that begins so may be one: any SQLite database."""
    return head.startswith(b"SQLite format 3\0")


def read(source: Source) -> Profile:
    """The profile of one export. Raises TraceError."""
    profiles = [profile_of(trace, NAME) for trace in read_nsys(source)]
    return profiles[0] if len(profiles) == 1 else merge_profiles(profiles)
