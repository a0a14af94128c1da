"""Recordings of trace-cmd: what the kernel did with the threads, of a machine or beside a profile of a program."""

from __future__ import annotations

from leadline.profiles.profile import Profile
from leadline.trace.kernel.columns import in_order
from leadline.trace.kernel.dat import MAGIC, read_dat
from leadline.trace.kernel.foreign import KernelRecording, clock_name, profile_of
from leadline.trace.kernel.tracefs import decode
from leadline.trace.source import Source
from leadline.trace.tables import TraceError

NAME = "a recording of trace-cmd (trace.dat)"
_NOT_NS = ("x86-tsc", "counter", "uptime")


def recognises(head: bytes, source: Source) -> bool:
    """Whether a file that begins so may be one."""
    return head.startswith(MAGIC)


def read(source: Source) -> Profile:
    """The profile of the machine. Raises TraceError."""
    return profile_of(recording(source))


def kernel_only(source: Source) -> bool:
    """It has nothing of a program."""
    return True


def recording(source: Source) -> KernelRecording:
    """All events of all buffers of a file. Raises TraceError."""
    if source.path is None:
        raise TraceError(f"{source.name} is compressed; give the file of trace-cmd itself")
    found = read_dat(source.path)
    if found.clock in _NOT_NS:
        raise TraceError(
            f"{source.name} was recorded on the clock {found.clock}, which does not count nanoseconds; use "
            "trace-cmd record -C mono"
        )
    parts = []
    lost = 0
    for pages in found.buffers:
        columns, missing = decode(pages, found.formats, found.machine, found.page_bytes)
        parts += columns
        lost += missing
    sentences = (f"{found.cut_off:,} bytes of {source.name} are missing at its end",) if found.cut_off else ()
    return KernelRecording(
        source=source.name,
        recorder="trace-cmd",
        events=in_order(parts),
        clock=clock_name(found.clock),
        host=found.host,
        lost=max(lost, found.lost),
        names=found.names,
        sentences=sentences,
    )
