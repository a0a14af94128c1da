"""The trace window as a Perfetto timeline: a process per process, a track per thread and per stream of a device.

Spans of a thread that overlap without nesting go to further tracks of that thread. Arrows lead from a launch to its
device work. Processes of several machines are related by CLOCK_REALTIME; the timeline begins with the first event.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.convert.request import NothingThereError, Request
from leadline.convert.sinks import Sink
from leadline.convert.stacks import profile_name
from leadline.profiles import Profile
from leadline.schema import FrameKind
from leadline.trace.perfetto import PerfettoWriter, Slice
from leadline.trace.profile_window import read_profile
from leadline.trace.spans import nearest
from leadline.trace.tables import CALL_KINDS, DEVICE_KINDS, Kind, Trace, TraceError

_CORRELATION_BITS = 48
_MOST_GROUPS = 16
_POINTS = (Kind.ALLOCATE,)  # events that show an amount, not a stretch of time


def export(profile: Profile, request: Request, sink: Sink) -> None:
    """See `ExporterModule.export`; a window has no metrics to choose from."""
    if request.metric is not None:
        raise NothingThereError("A Perfetto timeline holds events, not metrics; leave --metric out.")
    try:
        traces = read_profile(profile, profile_name(profile))
    except TraceError as error:
        raise NothingThereError(str(error)[:1].upper() + str(error)[1:] + ".") from error
    begin_ns = min(trace.origin_ns for trace in traces)
    lines = _lines(profile)
    writer = PerfettoWriter(sink.write)
    for trace in traces:
        _trace(writer, profile, trace, trace.origin_ns - begin_ns, lines)


def _lines(profile: Profile) -> list[str]:
    """Where in the program every node stands: FILE:LINE of its innermost Python frame, or empty."""
    tree = profile.tree
    at = nearest(tree.parent, tree.kinds == FrameKind.PYTHON)
    frames = tree.frame_of[np.maximum(at, 0)].tolist()
    known: dict[int, str] = {}
    found = []
    for row, frame in zip(at.tolist(), frames, strict=True):
        if row >= 0 and frame not in known:
            known[frame] = f"{tree.text('file', frame)}:{int(tree.frames['line'][frame])}"
        found.append(known[frame] if row >= 0 else "")
    return found


def _trace(writer: PerfettoWriter, profile: Profile, trace: Trace, shift_ns: int, lines: list[str]) -> None:
    """The processes of one trace: the one it is of, and those that joined it."""
    processes = {thread.process for thread in trace.threads} or {-1}
    joined = trace.events["correlation"]
    launched = set(joined[np.isin(trace.events["kind"], [int(kind) for kind in CALL_KINDS]) & (joined != 0)].tolist())
    device_owner = next((row for row in sorted(processes, key=str) if isinstance(row, int)), -1)
    for process in sorted(processes, key=str):
        record = profile.processes[process] if isinstance(process, int) and process >= 0 else None
        rank = f"rank {record.rank} " if record and record.rank >= 0 else ""
        number = writer.process(f"{rank}{record.name} ({record.pid})" if record else "process")
        tracks = 0
        for title, rows in _tracks(trace, process, with_devices=process == device_owner):
            for part, stack in enumerate(_nested(trace, rows)):
                tracks += 1
                track = writer.track(number, tracks, f"{title} (overlapping {part})" if part else title)
                slices = [_slice(trace, row, end, shift_ns, lines, launched, number) for row, end in stack]
                writer.slices(track, slices)


def _tracks(trace: Trace, process: int | str, *, with_devices: bool) -> Iterator[tuple[str, list[int]]]:
    """Title and rows of every thread of a process, and of every stream of its devices."""
    events = trace.events
    spans = ~np.isin(events["kind"], [int(kind) for kind in _POINTS])
    for at, thread in enumerate(trace.threads):
        if thread.process == process:
            yield thread.name or f"thread {thread.tid}", np.flatnonzero(spans & (events["thread"] == at)).tolist()
    if not with_devices:
        return
    on_device = np.isin(events["kind"], [int(kind) for kind in DEVICE_KINDS]) & (events["thread"] < 0)
    places = set(zip(events["device"][on_device].tolist(), events["stream"][on_device].tolist(), strict=True))
    for device, stream in sorted(places):
        rows = np.flatnonzero(on_device & (events["device"] == device) & (events["stream"] == stream))
        yield f"GPU {device} stream {stream}", rows.tolist()


def _nested(trace: Trace, rows: list[int]) -> list[list[tuple[int, int]]]:
    """Rows and their ends, ordered by start, in as many groups as it takes for each to nest; the first takes what it
    can. Beyond `_MOST_GROUPS` a span is cut short to nest in the last."""
    end = trace.end_ns
    groups: list[list[tuple[int, int]]] = []
    open_ends: list[list[int]] = []
    for row in rows:
        begin, finish = int(trace.events["start_ns"][row]), int(end[row])
        for group, ends in zip(groups, open_ends, strict=True):
            while ends and ends[-1] <= begin:
                ends.pop()
            if not ends or finish <= ends[-1]:
                group.append((row, finish))
                ends.append(finish)
                break
        else:
            if len(groups) < _MOST_GROUPS:
                groups.append([(row, finish)])
                open_ends.append([finish])
            else:
                groups[-1].append((row, open_ends[-1][-1]))
                open_ends[-1].append(open_ends[-1][-1])
    return groups


def _slice(
    trace: Trace, row: int, end_ns: int, shift_ns: int, lines: list[str], launched: set[int], process: int
) -> Slice:
    events = trace.events
    kind, correlation = int(events["kind"][row]), int(events["correlation"][row])
    notes = {"kind": Kind(kind).name.lower() if kind in set(Kind) else f"kind {kind}"}
    if line := lines[int(events["node"][row])]:
        notes["at"] = line
    if (step := int(events["step"][row])) >= 0:
        notes["step"] = str(step)
    if (size := int(events["bytes"][row])) > 0:
        notes["bytes"] = str(size)
    arrow = process << _CORRELATION_BITS | correlation & (1 << _CORRELATION_BITS) - 1 if correlation in launched else 0
    on_device = events["thread"][row] < 0
    return Slice(
        shift_ns + int(events["start_ns"][row]),
        shift_ns + end_ns,
        trace.name(row),
        notes,
        leaves=0 if on_device else arrow,
        arrives=arrow if on_device else 0,
    )
