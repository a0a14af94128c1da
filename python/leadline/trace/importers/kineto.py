"""Kineto traces: torch.profiler's `export_chrome_trace`, of any release since 1.8.

Their Python frames have the line at which a function is defined, not the one being executed.
"""

from __future__ import annotations

from leadline.profiles.merge import merge_profiles
from leadline.profiles.profile import Profile
from leadline.trace.importers.tree import profile_of
from leadline.trace.kineto import read_kineto
from leadline.trace.merged_ranks import programs
from leadline.trace.source import Source

NAME = "a Kineto trace of torch.profiler"


def recognises(head: bytes, source: Source) -> bool:
    """Whether a file that begins so may be one: JSON."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def read(source: Source) -> Profile:
    """The profile of one rank's trace, or of the ranks that were merged into one file. Raises TraceError."""
    found = [profile_of(one, NAME) for one in programs(read_kineto(source, python=True))]
    return found[0] if len(found) == 1 else merge_profiles(found)
