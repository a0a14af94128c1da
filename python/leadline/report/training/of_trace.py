"""The same summary of a trace that others have recorded: steps by its marks, walls, classes and kernels per rank."""

from __future__ import annotations

from leadline.analysis.tracework import DeviceWork, device_walls, device_work
from leadline.profiles import Profile
from leadline.report.phrases import loss_text
from leadline.report.provenance import losses
from leadline.report.training.build import MOST_HOT, build_summary
from leadline.report.training.counted import NONE, steps_row
from leadline.report.training.model import Hot, Share, TrainingSummary
from leadline.steps import RankSteps
from leadline.steps import Steps as FoundSteps
from leadline.steps.model import COUNTED
from leadline.steps.of_events import find_steps
from leadline.steps.of_profile import steps_of
from leadline.trace.profile_window import read_profile
from leadline.trace.tables import Kind, Trace, TraceError
from leadline.work.operators import CLASSES


def summarize_profile(profile: Profile, name: str) -> list[TrainingSummary]:
    """One summary per rank of an imported profile."""
    try:
        traces = read_profile(profile, name)
    except TraceError:  # it holds no event
        return [build_summary(profile, {}, (), name)]
    steps = steps_of(profile)
    by_rank = {one.rank: one for one in steps.ranks} if isinstance(steps, FoundSteps) else {}
    return [_summary(profile, trace, by_rank.get(trace.rank), name) for trace in traces]


def _summary(profile: Profile, trace: Trace, steps: RankSteps | None, name: str) -> TrainingSummary:
    found = find_steps(trace)
    work = device_work(trace)
    walls = device_walls(trace, found.steps, work) if work.event.size else {}
    names = {row: device.name or "device" for row, device in enumerate(trace.devices)}
    labels = {row: f"{names.get(row, 'device')} {_index(trace, row)}" for row in walls}
    recorded = tuple(step.number for step in found.everything) if steps is not None else ()
    return TrainingSummary(
        program="",
        profile=name,
        host="",
        rank=trace.rank,
        world_size=trace.world_size,
        missing_ranks=(),
        absent_ranks=(),
        hardware=tuple(dict.fromkeys(names.values())) or ("no device",),
        schedule=f"{COUNTED[steps.rests_on]} were counted" if steps is not None else "no step is known",
        started_at_ns=0,
        steps=steps_row(steps, steps.mean_ns, recorded) if steps is not None else NONE,
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
        losses=(*(loss_text(loss) for loss in losses(profile)), *((found.left_out,) if found.left_out else ())),
    )


def _index(trace: Trace, row: int) -> int:
    return trace.devices[row].index if row < len(trace.devices) else row


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
