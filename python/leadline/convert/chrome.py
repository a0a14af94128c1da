"""The trace window as Chrome's trace events (JSON), which chrome://tracing, Perfetto and tools for torch's traces read.

Times are microseconds since the first event, as that format wants; a thread is a thread, a stream of a device is a
thread of the process that launched to it. Spans of a thread that overlap without nesting go to further threads. Arrows
lead from a launch to its device work.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from leadline.convert.perfetto import launch_numbers, tracks
from leadline.convert.request import Request
from leadline.convert.sinks import Sink
from leadline.convert.window import program_lines, window_traces
from leadline.profiles import Profile
from leadline.trace.lanes import lanes
from leadline.trace.tables import DEVICE_KINDS, Kind, Trace

_AT_ONCE = 4096
_MOST_NS = 1 << 62


def export(profile: Profile, request: Request, sink: Sink) -> None:
    """See `ExporterModule.export`; a window has no metrics to choose from."""
    traces = window_traces(profile, request)
    begin_ns = min(trace.origin_ns + int(trace.events["start_ns"].min(initial=0)) for trace in traces)
    lines = program_lines(profile)
    sink.write(b'{"displayTimeUnit":"ns","traceEvents":[\n')
    waiting: list[str] = []
    first = True
    for event in _events(profile, traces, lines, begin_ns):
        waiting.append(json.dumps(event, separators=(",", ":")))
        if len(waiting) == _AT_ONCE:
            sink.write((("" if first else ",\n") + ",\n".join(waiting)).encode("utf-8", "backslashreplace"))
            waiting, first = [], False
    sink.write((("" if first or not waiting else ",\n") + ",\n".join(waiting) + "\n]}\n").encode("utf-8", "replace"))


def _events(profile: Profile, traces: Sequence[Trace], lines: Sequence[str], begin_ns: int) -> Iterator[dict[str, Any]]:
    process_number = 0
    for trace in traces:
        processes = sorted({thread.process for thread in trace.threads} or {-1}, key=str)
        device_owner = next((row for row in processes if isinstance(row, int)), -1)
        arrows = launch_numbers(trace)
        for process in processes:
            process_number += 1
            yield _named("process_name", process_number, 0, _title(profile, process))
            number = 0
            for name, _, rows in tracks(trace, process, with_devices=process == device_owner):
                ends = np.minimum(trace.end_ns[rows], _MOST_NS)
                for part, lane in enumerate(lanes(rows, trace.events["start_ns"][rows], ends)[0]):
                    number += 1
                    title = f"{name} (overlapping {part})" if part else name
                    yield _named("thread_name", process_number, number, title)
                    shift_ns = trace.origin_ns - begin_ns
                    for row, start, end in zip(
                        lane.rows.tolist(), lane.start_ns.tolist(), lane.end_ns.tolist(), strict=True
                    ):
                        yield _span(trace, row, start + shift_ns, end - start, lines) | {
                            "pid": process_number,
                            "tid": number,
                        }
                        if arrows.size and arrows[row]:
                            yield _arrow(trace, row, start + shift_ns, int(arrows[row])) | {
                                "pid": process_number,
                                "tid": number,
                            }


def _title(profile: Profile, process: int | str) -> str:
    if not isinstance(process, int) or process < 0:
        return "process"
    record = profile.processes[process]
    return f"{f'rank {record.rank} ' if record.rank >= 0 else ''}{record.name} ({record.pid})"


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}


def _span(trace: Trace, row: int, start_ns: int, duration_ns: int, lines: Sequence[str]) -> dict[str, Any]:
    events = trace.events
    said: dict[str, Any] = {}
    if where := lines[int(events["node"][row])]:
        said["at"] = where
    if amount := int(events["bytes"][row]):
        said["bytes"] = amount
    return {
        "ph": "X",
        "cat": Kind(int(events["kind"][row])).name.lower(),
        "name": trace.name(row),
        "ts": start_ns / 1000,
        "dur": duration_ns / 1000,
        "args": said,
    }


def _arrow(trace: Trace, row: int, start_ns: int, number: int) -> dict[str, Any]:
    arrives = int(trace.events["kind"][row]) in [int(kind) for kind in DEVICE_KINDS]
    event = {"ph": "f" if arrives else "s", "name": "launch", "cat": "launch", "id": number, "ts": start_ns / 1000}
    return event | {"bp": "e"} if arrives else event
