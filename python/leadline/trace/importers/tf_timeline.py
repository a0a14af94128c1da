"""Chrome traces that TensorFlow 1 makes of a full trace: `timeline.Timeline(...).generate_chrome_trace_format()`.

Each device is a process `NAME Compute`, whose threads only put side by side what ran at the same time; times are whole
microseconds. The other processes repeat the nodes as tensors and allocations, and are left out.
"""

from __future__ import annotations

import json
import re
from typing import Any

from leadline.profiles.profile import Profile
from leadline.trace.importers.tf_nodes import NodeRun, NodeTrace, profile_of
from leadline.trace.source import Source, whole_of
from leadline.trace.tables import TraceError

NAME = "a Chrome trace of TensorFlow 1 (timeline.Timeline)"

_LARGEST = 1 << 30
_COMPUTE = " Compute"
_FIRST = re.compile(rb'^\s*\{\s*"traceEvents":\s*\[\s*\{[^{}]*\{\s*"name":\s*"Allocators"\s*\}')
"""It begins with the name of the process of allocators, whether it shows these or not."""
_INPUT = re.compile(r"^input\d+$")


def recognises(head: bytes, source: Source) -> bool:
    """Whether a file that begins so may be one."""
    return _FIRST.match(head) is not None


def read(source: Source) -> Profile:
    """The profile of one call of a graph. Raises TraceError."""
    data = whole_of(source, _LARGEST, "which is too much of JSON; import the RunMetadata that it was made from")
    try:
        told = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{source.name} is {NAME} that is damaged or cut off; copy the whole file again") from error
    del data
    events = told.get("traceEvents") if isinstance(told, dict) else None
    events = [event for event in events if isinstance(event, dict)] if isinstance(events, list) else []
    devices = {
        event.get("pid"): str(_args(event).get("name", "")).removesuffix(_COMPUTE)
        for event in events
        if event.get("name") == "process_name" and str(_args(event).get("name", "")).endswith(_COMPUTE)
        if isinstance(event.get("pid"), int)
    }
    trace = NodeTrace()
    unread = 0
    for event in events:
        if event.get("ph") != "X" or event.get("cat") != "Op":
            continue
        run = _node(event, devices)
        if run is None:
            unread += 1
        else:
            trace.runs.append(run)
    if unread:
        trace.losses["Nodes without a device or times."] = unread
    return profile_of(trace, source.name, NAME)


def _node(event: dict[str, Any], devices: dict[Any, str]) -> NodeRun | None:
    told = _args(event)
    start, lasted, pid = _time_ns(event.get("ts")), _time_ns(event.get("dur")), event.get("pid")
    if start < 0 or lasted < 0 or not isinstance(pid, int) or pid not in devices:
        return None
    inputs = tuple(str(value) for key, value in told.items() if _INPUT.match(key))
    name, kind = str(told.get("name") or event.get("name") or ""), str(told.get("op") or event.get("name") or "")
    return NodeRun(devices[pid], name, kind, start, lasted, inputs=inputs)


def _time_ns(value: object) -> int:
    """Of microseconds; -1 for what is no time."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        return -1
    return value * 1000 if isinstance(value, int) else round(value * 1000)


def _args(event: dict[str, Any]) -> dict[str, Any]:
    found = event.get("args")
    return found if isinstance(found, dict) else {}
