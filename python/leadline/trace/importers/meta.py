"""What an imported profile says of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leadline import _version
from leadline.profiles.lineage import IMPORTED
from leadline.schema import FORMAT_VERSION
from leadline.trace.allocator import History

_REALTIME_NS = 10**18
"""September 2001: clocks that show less count from something else, so they tell no date."""


def imported_meta(
    source: str,
    recorder: str,
    *,
    pid: int,
    rank: int = 0,
    world_size: int = 0,
    origin_ns: int,
    wall_ns: int,
    complete: bool = True,
    estimated: str = "",
    allocators: Sequence[History] = (),
    recorder_options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The meta of one process that `recorder` recorded in the file `source`.

    `origin_ns`: CLOCK_REALTIME when it began, or what the file's clock showed. `estimated`: a sentence on what its
    figures are not, for readers to print; empty where they are measured. `allocators`: in times of the trace.
    `recorder_options`: what the file says of its recorder, for predictions.
    """
    started_ns = origin_ns if origin_ns >= _REALTIME_NS else 0
    clock = {"monotonic_ns": 0, "realtime_ns": origin_ns, "uncertainty_ns": 0}
    program = {"argv": [source]}
    record: dict[str, Any] = {
        "identity": f"{IMPORTED}{source}.{rank}.{pid}.{origin_ns}",
        "pid": pid,
        "rank": rank,
        "launch": {"world_size": world_size} if world_size > 0 else {},
        "started_at_ns": started_ns,
        "wall_ns": wall_ns,
        "program": program,
        "clock": clock,
        "complete": complete,
        "python_frames": "read",
    }
    if recorder_options:
        record["recorder"] = dict(recorder_options)
    if allocators:
        record["dataflow"] = {"allocators": [one.record() for one in allocators]}
    said = {"ok": True, "version": "", "message": f"Made from {source}, {recorder}."}
    return {
        "format": {"name": "leadline", "version": FORMAT_VERSION},
        "leadline": _version.__version__,
        "program": program,
        "started_at_ns": started_ns,
        "wall_ns": wall_ns,
        "asked": {},
        "available": {"import": {**said, "estimated": estimated} if estimated else said},
        "cost": {},
        "clock": clock,
        "host": {},
        "processes": [record],
        "complete": complete,
    }
