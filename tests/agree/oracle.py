"""A second reader of Kineto traces: what is in the file, by the plainest means. Nothing of the product is used.

Times are nanoseconds. An operator is an event of the category `cpu_op` that is not named like a range of the program; a
range is an annotation, or an operator that is named like one.
"""

from __future__ import annotations

import gzip
import json
import re
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

OPERATORS, RANGES = ("cpu_op",), ("user_annotation",)
KERNELS, COPIES, SETS = "kernel", "gpu_memcpy", "gpu_memset"
DEVICE = (KERNELS, COPIES, SETS)
PHASES = (
    ("zero_grad", r".*zero_grad.*"),
    ("data loading", r"enumerate\(DataLoader\)#.*"),
    ("optimizer", r"Optimizer\.step#.*|## optimizer ##"),
    ("backward", r"## backward ##"),
    ("forward", r"## forward ##|.*\.forward"),
)
RANGE_NAMES = re.compile(r"(nccl|gloo|mpi|ucc|rccl|hccl|xccl):\w+")


def raw_events(path: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """(name, events) of each trace in a file: JSON, a gzip of it, or a tar of several."""
    if path.name.endswith(".tar.gz"):
        with tarfile.open(path) as archive:
            for member in sorted(archive.getmembers(), key=lambda one: one.name):
                stream = archive.extractfile(member) if member.name.endswith(".json") else None
                if stream is not None:
                    yield Path(member.name).name, json.load(stream)["traceEvents"]
        return
    data = path.read_bytes()
    content = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    yield path.name, content if isinstance(content, list) else content["traceEvents"]


def ns(microseconds: float, origin: float = 0.0) -> int:
    return round((float(microseconds) - origin) * 1000)


@dataclass
class Sums:
    """Counts and times by a key."""

    count: Counter[Any] = field(default_factory=Counter)
    total: Counter[Any] = field(default_factory=Counter)

    def add(self, key: Any, value: int) -> None:
        self.count[key] += 1
        self.total[key] += value


@dataclass
class Oracle:
    """What a trace holds. Kernels and copies by (name, device, stream); `launched`: how many pieces of device work of a
    name an operator launched, None for work without a launch."""

    operators: Sums = field(default_factory=Sums)
    ranges: Sums = field(default_factory=Sums)
    phases: Sums = field(default_factory=Sums)
    device: Sums = field(default_factory=Sums)
    busy: dict[int, int] = field(default_factory=dict)
    launched: Counter[tuple[str, str | None]] = field(default_factory=Counter)
    unlaunched: int = 0
    copied_bytes: int = 0
    steps: int = 0


def phase_of(name: str) -> str | None:
    return next((phase for phase, pattern in PHASES if re.fullmatch(pattern, name)), None)


def read(events: list[dict[str, Any]], *, process_of_device: dict[int, int] | None = None) -> Oracle:
    """Everything of the oracle. `process_of_device`: where several processes are in the file, whose each device is."""
    found = Oracle()
    spans = whole(events)
    busy: dict[int, list[tuple[int, int]]] = defaultdict(list)
    calls: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    open_operators: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    first = min((float(event["ts"]) for event in spans if known(event)), default=0.0)
    for event in spans:
        name, duration = event.get("name", ""), ns(event.get("dur", 0))
        category = str(event.get("cat", "")).lower()
        phase = phase_of(name) if "::" not in name else None
        if category in OPERATORS and phase is None and not RANGE_NAMES.match(name):
            found.operators.add(name, duration)
            open_operators[event["pid"], event["tid"]].append(event)
        elif category in OPERATORS + RANGES and name.startswith("ProfilerStep"):
            found.steps += 1
        elif category in OPERATORS + RANGES:
            (found.phases if phase else found.ranges).add(phase or name, duration)
        elif category.endswith(("_runtime", "_driver")) and "correlation" in event["args"]:
            calls[event["pid"], event["args"]["correlation"]].append(event)
        elif category in DEVICE:
            args = event["args"]
            found.device.add((name, args["device"], args["stream"]), duration)
            begin = ns(event["ts"], first)
            busy[args["device"]].append((begin, begin + duration))
            found.copied_bytes += args.get("bytes", 0) if category == COPIES else 0
    processes = {process for process, _ in calls}
    holders = {track: Holders(inside) for track, inside in open_operators.items()}
    for event in spans:
        if str(event.get("cat", "")).lower() not in DEVICE:
            continue
        args = event["args"]
        process = (process_of_device or {}).get(args["device"], next(iter(processes), 0))
        launch = last_before(calls.get((process, args.get("correlation", 0)), []), float(event["ts"]))
        if launch is None:
            found.unlaunched += 1
            continue
        around = holders.get((launch["pid"], launch["tid"]))
        holder = around.at(float(launch["ts"])) if around else None
        found.launched[event["name"], holder] += 1
    found.busy = {device: covered(pairs) for device, pairs in busy.items()}
    return found


def whole(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Spans of one event, and of two: an end (E) closes what its thread began (B) last."""
    spans = [event for event in events if event.get("ph") == "X"]
    begun: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for event in sorted((one for one in events if one.get("ph") in ("B", "E")), key=lambda one: float(one["ts"])):
        stack = begun[event["pid"], event["tid"]]
        if event["ph"] == "B":
            stack.append(event)
        elif stack:
            begin = stack.pop()
            spans.append({**begin, "ph": "X", "dur": float(event["ts"]) - float(begin["ts"])})
    return spans


def halves(events: list[dict[str, Any]]) -> int:
    """Begins and ends without the other half."""
    sides = [event for event in events if event.get("ph") in ("B", "E")]
    return len(sides) - 2 * len(whole(sides))


def known(event: dict[str, Any]) -> bool:
    return (
        str(event.get("cat", "")).lower().endswith(("_op", "_annotation", "_runtime", "_driver", "kernel", "_memcpy"))
    )


def last_before(calls: list[dict[str, Any]], at: float) -> dict[str, Any] | None:
    before = [call for call in calls if float(call["ts"]) <= at]
    return max(before, key=lambda call: float(call["ts"])) if before else None


class Holders:
    """The innermost operator of a thread at a moment: of those that are open, the one that began last."""

    def __init__(self, operators: list[dict[str, Any]]) -> None:
        self.begin = np.array([float(one["ts"]) for one in operators])
        self.end = self.begin + np.array([float(one.get("dur", 0)) for one in operators])
        order = np.lexsort((-self.end, self.begin))
        self.begin, self.end = self.begin[order], self.end[order]
        self.names = [operators[place]["name"] for place in order]

    def at(self, moment: float) -> str | None:
        last = int(np.searchsorted(self.begin, moment, side="right")) - 1
        while last >= 0 and self.end[last] <= moment:
            last -= 1
        return self.names[last] if last >= 0 else None


def covered(pairs: list[tuple[int, int]]) -> int:
    """Length of the union of intervals."""
    total, until = 0, -(1 << 62)
    for begin, end in sorted(pairs):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total
