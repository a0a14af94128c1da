"""The same summary of a trace that others have recorded: steps by its marks, walls, classes and kernels per rank."""

from __future__ import annotations

import statistics
from itertools import pairwise
from pathlib import Path

import numpy as np

from leadline.analysis.tracework import DeviceWork, device_walls, device_work
from leadline.report.training.build import MOST_HOT
from leadline.report.training.model import Hot, Share, Steps, TrainingSummary
from leadline.steps import Found
from leadline.steps.of_events import find_steps
from leadline.trace.kineto import read_kineto
from leadline.trace.source import sources
from leadline.trace.tables import Kind, Trace
from leadline.work.operators import CLASSES


def summarize_trace(path: str | Path) -> list[TrainingSummary]:
    """One summary per rank of a Kineto trace, an archive or a folder of them. Raises TraceError and OSError."""
    return [_summary(read_kineto(source), source.name) for source in sources(path)]


def _summary(trace: Trace, name: str) -> TrainingSummary:
    found = find_steps(trace)
    work = device_work(trace)
    walls = device_walls(trace, found.steps, work) if work.event.size else {}
    names = {row: device.name or "device" for row, device in enumerate(trace.devices)}
    labels = {row: f"{names.get(row, 'device')} {_index(trace, row)}" for row in walls}
    lost = () if trace.complete else ("the trace ends early",)
    return TrainingSummary(
        program="",
        profile=Path(name).name,
        host="",
        rank=trace.rank,
        world_size=trace.world_size,
        missing_ranks=(),
        absent_ranks=(),
        hardware=tuple(dict.fromkeys(names.values())) or ("no device",),
        schedule=f"steps by {found.found_by}",
        started_at_ns=0,
        steps=_steps(found),
        metric="gpu_time",
        walls=tuple((labels[row], wall) for row, wall in walls.items()),
        shares=tuple(_shares(trace, work)),
        hot=tuple(_hot(trace, work)),
        efficiency=None,
        peaks=(),
        holders=(),
        allocators=(),
        out_of_memory="",
        data_ns=0,
        losses=(*trace.warnings, *((found.left_out,) if found.left_out else ()), *lost),
    )


def _index(trace: Trace, row: int) -> int:
    return trace.devices[row].index if row < len(trace.devices) else row


def _steps(found: Found) -> Steps:
    times = sorted(found.walls_ns)
    numbers = tuple(step.number for step in found.steps)
    return Steps(
        measured=len(times),
        count=len(times),
        first=numbers[0],
        last=numbers[-1],
        recorded=numbers,
        mean_ns=found.mean_ns,
        median_ns=statistics.median(times),
        p95_ns=float(np.percentile(times, 95)),
        min_ns=times[0],
        max_ns=times[-1],
        std_ns=statistics.pstdev(times),
        between_ns=sum(max(later.start_ns - earlier.end_ns, 0) for earlier, later in pairwise(found.steps)),
    )


def _shares(trace: Trace, work: DeviceWork) -> list[Share]:
    length = trace.events["duration_ns"][work.event]
    found = []
    for number, name in enumerate(CLASSES):
        here = work.found == number
        if here.any():
            found.append(Share(name, int(length[here].sum()), int(here.sum())))
    return sorted(found, key=lambda share: -share.time_ns)


def _hot(trace: Trace, work: DeviceWork) -> list[Hot]:
    """Kernels by name and operator."""
    groups: dict[tuple[str, str, int], list[int]] = {}
    for row, operator in zip(work.event.tolist(), work.operator, strict=True):
        key = trace.name(row), operator, int(trace.events["kind"][row])
        group = groups.setdefault(key, [0, 0])
        group[0] += int(trace.events["duration_ns"][row])
        group[1] += 1
    ranked = sorted(groups.items(), key=lambda item: -item[1][0])[:MOST_HOT]
    return [
        Hot(name=name, kind=Kind(kind).name.lower(), time_ns=time, calls=calls, place=operator, module="")
        for (name, operator, kind), (time, calls) in ranked
    ]
