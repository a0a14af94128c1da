"""How the checks read profiles and traces: launches and times by kernel name, losses, the provider's own status."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leadline.profiles import Profile

BELOW_GRAPH = "captured at"
CAPTURED_BEFORE = "captured before profiling"
_WORK = ("kernel", "copy", "collective")


def kernels(profile: Profile) -> tuple[Counter[str], dict[str, int]]:
    """Launches and nanoseconds per kernel name; copies and sets are counted by the names torch.profiler uses."""
    counts: Counter[str] = Counter()
    times: dict[str, int] = {}
    for kind in _WORK:
        for node in profile.tree.find(kind=kind):
            time_ns = node.exclusive("gpu_time")
            counts[node.name] += time_ns.count
            times[node.name] = times.get(node.name, 0) + time_ns.sum
    return counts, times


def trace_kernels(path: Path) -> tuple[Counter[str], dict[str, int]]:
    """The same from torch.profiler's Chrome trace."""
    events = json.loads(path.read_text())["traceEvents"]
    counts: Counter[str] = Counter()
    times: dict[str, int] = {}
    for event in events:
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            counts[event["name"]] += 1
            times[event["name"]] = times.get(event["name"], 0) + round(float(event["dur"]) * 1000)
    return counts, times


def differences(ours: dict[str, int], theirs: dict[str, int], most: int = 5) -> list[tuple[str, int, int]]:
    """The names whose times differ most, for a reader of a failed comparison."""
    names = sorted(ours.keys() | theirs.keys(), key=lambda name: -abs(ours.get(name, 0) - theirs.get(name, 0)))
    return [(name[:120], ours.get(name, 0), theirs.get(name, 0)) for name in names[:most]]


def gpu_time(profile: Profile, where: Callable[[list[str]], bool] = lambda path: True) -> int:
    """Nanoseconds of device work whose path of names passes `where`."""
    return sum(
        node.exclusive("gpu_time").sum
        for kind in _WORK
        for node in profile.tree.find(kind=kind)
        if where([step.name for step in node.path()])
    )


def kernel_paths(profile: Profile) -> list[list[str]]:
    return [[step.name for step in node.path()] for node in profile.tree.find(kind="kernel")]


def losses(profile: Profile) -> dict[str, int]:
    return {str(loss.kind.name): loss.count for loss in profile.losses if loss.count > 0}


def sentences(profile: Profile) -> list[str]:
    return [loss.detail for loss in profile.losses if loss.count > 0 and loss.detail]


def status(profile: Profile) -> dict[str, Any]:
    """What the provider says of itself in the first process."""
    available = profile.meta["processes"][0]["available"].get("nvidia", {})
    return {"ok": available.get("ok"), "message": available.get("message"), **available.get("details", {})}
