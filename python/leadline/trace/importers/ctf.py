"""CTF traces: of the kernel (LTTng's modules, perf), and of programs (LTTng-UST, and what Leadline exports).

Events of programs come in pairs that begin and end something. Pairs are known by their names, as tracepoints have them:
`x_begin` and `x_end`, `func_entry` and `func_exit`, `operation_start` and `operation_stop`.
"""

from __future__ import annotations

from leadline.profiles.merge import merge_profiles
from leadline.profiles.profile import Profile
from leadline.trace.ctf import CtfTrace, open_ctf
from leadline.trace.ctf_spans import user_traces
from leadline.trace.importers.tree import profile_of as profile_of_trace
from leadline.trace.kernel.ctf import KernelEvents
from leadline.trace.kernel.foreign import MONOTONIC, KernelRecording, clock_name, profile_of
from leadline.trace.source import CTF_METADATA, Source
from leadline.trace.tables import TraceError

NAME = "a folder of CTF traces (LTTng, perf data convert --to-ctf)"
_MOST_NAMED = 5


def recognises(head: bytes, source: Source) -> bool:
    """Whether the metadata of a folder begins as CTF's does."""
    return source.path is not None and source.path.is_dir() and head.lstrip().startswith(CTF_METADATA)


def read(source: Source) -> Profile:
    """The profile of one trace. Raises TraceError."""
    trace = _opened(source)
    if trace.of_kernel:
        return profile_of(_recording(trace))
    profiles = [_of_machine(profile_of_trace(one, NAME), trace) for one in user_traces(trace)]
    return profiles[0] if len(profiles) == 1 else merge_profiles(profiles)


def _of_machine(profile: Profile, trace: CtfTrace) -> Profile:
    """The profile, which says whose clock its times are of, as the trace does."""
    if clock_name(trace.clock) != MONOTONIC:
        return profile
    record = profile.meta["processes"][0]
    began_ns = record["clock"]["realtime_ns"] - (trace.realtime_ns or 0)
    clock = {**record["clock"], "moved_ns": -began_ns}  # to count from the first event
    said = {"clock": clock, "boot_id": trace.clock_uuid, "hostname": str(trace.environment.get("hostname", ""))}
    return Profile(profile.tables, {**profile.meta, "processes": [{**record, **said}]})


def kernel_only(source: Source) -> bool:
    """Whether a kernel wrote it. Raises TraceError."""
    return _opened(source).of_kernel


def recording(source: Source) -> KernelRecording:
    """The events of a kernel's trace. Raises TraceError."""
    return _recording(_opened(source))


def _opened(source: Source) -> CtfTrace:
    assert source.path is not None  # `recognises` asked for it
    try:
        return open_ctf(source.path, source.name)
    except OSError as error:
        raise TraceError(f"the metadata of {source.name} cannot be read ({error.strerror})") from error


def _recording(trace: CtfTrace) -> KernelRecording:
    found = KernelEvents(str(trace.environment.get("machine", "x86_64")))
    found.take(trace.events())
    sentences = trace.sentences()
    if found.unread:
        names = ", ".join(name for name, _ in found.unread.most_common(_MOST_NAMED))
        more = f" and {len(found.unread) - _MOST_NAMED} others" if len(found.unread) > _MOST_NAMED else ""
        sentences.append(f"{found.unread.total():,} events are not read ({names}{more})")
    tracer = str(trace.environment.get("tracer_name", ""))
    return KernelRecording(
        source=trace.name,
        recorder="LTTng" if tracer.startswith("lttng") else f"{tracer} (CTF)".strip(),
        events=found.columns(),
        clock=clock_name(trace.clock),
        boot_id=trace.clock_uuid if clock_name(trace.clock) == MONOTONIC else "",
        host=str(trace.environment.get("hostname", trace.environment.get("host", ""))),
        realtime_ns=trace.realtime_ns,
        lost=trace.discarded,
        names=found.names,
        sentences=tuple(sentences),
    )
