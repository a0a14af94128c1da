"""Writes a trace of more than 216,000 events: the ResNet trace of the reference set twice in a row."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

SOURCE = "param-resnet-2080ti/resnet_kineto.json.gz"


def write_twice(source: Path, target: Path) -> int:
    """Write `source` followed by itself, later in time and with fresh correlation ids; returns the number of events."""
    with gzip.open(source, "rt", encoding="utf-8") as stream:
        trace = json.load(stream)
    events = trace["traceEvents"]
    stamps = [event["ts"] for event in events if "ts" in event and event.get("cat") != "Trace"]
    shift_us = max(stamps) - min(stamps) + 100_000
    highest = max((event.get("args") or {}).get("correlation", 0) for event in events)
    trace["traceEvents"] = [*events, *(_later(event, shift_us, highest) for event in events)]
    with gzip.open(target, "wt", encoding="utf-8") as stream:
        json.dump(trace, stream)
    return len(trace["traceEvents"])


def _later(event: dict[str, Any], shift_us: float, highest: int) -> dict[str, Any]:
    moved = dict(event)
    if "ts" in moved:
        moved["ts"] += shift_us
    if moved.get("cat") == "ac2g":
        moved["id"] += highest
    arguments = moved.get("args")
    if arguments and "correlation" in arguments:
        moved["args"] = {**arguments, "correlation": arguments["correlation"] + highest}
    return moved
