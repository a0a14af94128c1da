"""SQLite exports of Nsight Systems: one profile of all their processes."""

from __future__ import annotations

from leadline.profiles.merge import merge_profiles
from leadline.profiles.profile import Profile
from leadline.trace.importers.tree import profile_of
from leadline.trace.kernel.foreign import KernelRecording, joined
from leadline.trace.nsys import read_nsys
from leadline.trace.source import Source

NAME = "an SQLite export of Nsight Systems (nsys export --type sqlite)"


def recognises(head: bytes, source: Source) -> bool:
    """Whether a file that begins so may be one: any SQLite database."""
    return head.startswith(b"SQLite format 3\0")


def read(source: Source) -> Profile:
    """The profile of one export. Raises TraceError."""
    found = read_nsys(source)
    profiles = [profile_of(trace, NAME) for trace in found.traces]
    profile = profiles[0] if len(profiles) == 1 else merge_profiles(profiles)
    if not len(found.scheduling["time_ns"]) or not len(profile.events["start_ns"]):
        return profile
    recording = KernelRecording(
        source=source.name,
        recorder="Nsight Systems",
        events=found.scheduling,
        clock="of the session",
        realtime_ns=found.epoch_ns,
        sentences=(found.sentence,) if found.sentence else (),
    )
    return joined(profile, recording)
