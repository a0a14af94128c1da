"""Databases of ROCm's profilers: one profile of all their processes."""

from __future__ import annotations

from leadline.profiles.merge import merge_profiles
from leadline.profiles.profile import Profile
from leadline.trace.importers.tree import profile_of
from leadline.trace.rocpd import PREFIX, read_rocpd
from leadline.trace.source import Source
from leadline.trace.sqlite_events import tables_in

NAME = "a database of rocprofv3 (rocpd)"


def recognises(head: bytes, source: Source) -> bool:
    """Whether a file that begins so is one: an SQLite database with its tables."""
    return head.startswith(b"SQLite format 3\0") and any(name.startswith(PREFIX) for name in tables_in(source))


def read(source: Source) -> Profile:
    """The profile of one database. Raises TraceError."""
    profiles = [profile_of(trace, NAME) for trace in read_rocpd(source)]
    return profiles[0] if len(profiles) == 1 else merge_profiles(profiles)
