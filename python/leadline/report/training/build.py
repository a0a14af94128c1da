"""From a profile and what the loop wrote beside it to the summary. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leadline.analysis import Analysis, analysis_of
from leadline.analysis.efficiency import efficiency, measured_steps
from leadline.analysis.layers import merged_layers
from leadline.analysis.memorysnapshot import Snapshot
from leadline.analysis.overlap import Intervals, WallSplit, wall_split
from leadline.analysis.workclass import classes_of_work, generated_frames
from leadline.profiles import Profile
from leadline.report.paths import PathWords
from leadline.report.phrases import loss_text
from leadline.report.provenance import losses
from leadline.report.summary import best_findings, finding_text
from leadline.report.training.counted import NONE, steps_row
from leadline.report.training.memory import device_names, holders, largest_peaks
from leadline.report.training.model import Change, Hot, Share, Steps, TrainingSummary
from leadline.schema import EventKind, FrameKind
from leadline.steps import Steps as FoundSteps
from leadline.steps.of_profile import steps_of
from leadline.work.operators import CLASSES, COMPILATION

MOST_HOT = 15
MOST_FINDINGS = 5
_DEVICE_FRAMES = (FrameKind.KERNEL, FrameKind.COPY, FrameKind.COLLECTIVE)


def build_summary(
    profile: Profile,
    facts: Mapping[str, Any],
    others: Sequence[Mapping[str, Any]] = (),
    name: str = "",
    snapshot: Snapshot | None = None,
) -> TrainingSummary:
    """The summary of one rank; `facts` is its side file, `others` those of the job's other ranks, `snapshot` torch's
    own of the allocator, joined with this profile."""
    analysis = analysis_of(profile)
    nodes = classes_of_work(profile.tree)
    on_device = bool(analysis.exclusive("gpu_time").any())
    metric = "gpu_time" if on_device else "time"
    device_names = [device.name for device in profile.devices if device.name]
    host = profile.meta.get("host") or {}
    cores = host.get("cpus") or host.get("cpu_count")
    hardware = tuple(dict.fromkeys(device_names)) or (
        str(host.get("cpu") or "CPU") + (f", {cores} cores" if cores else ""),
    )
    world = int(facts.get("world_size", 1))
    steps = _steps(profile, facts)
    left = {int(other.get("rank", -1)): bool(other.get("complete")) for other in others}
    return TrainingSummary(
        program=Path(str(facts.get("program", ""))).name,
        profile=name,
        host=str(facts.get("host", "")),
        rank=int(facts.get("rank", 0)),
        world_size=world,
        missing_ranks=tuple(sorted(rank for rank, complete in left.items() if not complete)),
        absent_ranks=tuple(sorted(expected_ranks(facts, others) - set(left))),
        hardware=hardware,
        schedule=str(facts.get("schedule", "")),
        started_at_ns=int(facts.get("started_at_ns", 0)),
        steps=steps,
        metric=metric,
        walls=tuple(_walls(profile, nodes)),
        shares=tuple(_shares(analysis, nodes, metric)),
        hot=tuple(_hot(analysis, nodes, metric)),
        efficiency=efficiency(profile, facts),
        peaks=tuple(_peaks(analysis)),
        holders=tuple(holders(analysis, snapshot)),
        allocators=snapshot.allocators if snapshot is not None else (),
        out_of_memory=str((facts.get("out_of_memory") or {}).get("message", "")),
        data_ns=sum(thread.data_ns for thread in profile.threads),
        findings=tuple(finding_text(one) for one in best_findings(profile, MOST_FINDINGS)),
        losses=tuple(loss_text(loss) for loss in losses(profile)),
    )


def expected_ranks(facts: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> set[int]:
    """The other ranks of the job that were to be measured, as far as anybody says."""
    asked = facts.get("measured_ranks")
    told = asked if isinstance(asked, list) else [other.get("rank", -1) for other in others]
    return {int(rank) for rank in told} - {int(facts.get("rank", 0)), -1}


def _steps(profile: Profile, facts: Mapping[str, Any]) -> Steps:
    count = int(facts.get("steps", 0))
    if not count:
        found = steps_of(profile)
        return steps_row(found.main, found.mean_ns, profile.window.steps) if isinstance(found, FoundSteps) else NONE
    times = sorted(int(value) for value in facts.get("step_ns", ()))
    return Steps(
        count=count,
        measured=measured_steps(facts),
        first=facts.get("first_step"),
        last=facts.get("last_step"),
        recorded=profile.window.steps,
        mean_ns=int(facts.get("steps_sum_ns", 0)) / count if count else 0.0,
        median_ns=statistics.median(times) if times else 0.0,
        p95_ns=float(np.percentile(times, 95)) if times else 0.0,
        min_ns=times[0] if times else 0,
        max_ns=times[-1] if times else 0,
        std_ns=statistics.pstdev(times) if times else 0.0,
        between_ns=int(facts.get("between_steps_ns", 0)),
    )


def _walls(profile: Profile, nodes: Any) -> list[tuple[str, WallSplit]]:
    """One per device with events in the window, else one per process, in which operators compute."""
    events = profile.events
    start = np.asarray(events["start_ns"]).astype(np.int64)
    length = np.asarray(events["duration_ns"]).astype(np.int64)
    kind, node = np.asarray(events["kind"]), np.asarray(events["node"]).astype(np.int64)
    thread, device = np.asarray(events["thread"]), np.asarray(events["device"])
    process_of = np.array([item.process for item in profile.threads], np.int64)
    spans = np.stack([start, start + np.maximum(length, 0)], axis=1)
    done = length >= 0
    is_step = kind == int(EventKind.STEP)
    classes = nodes[node] if node.size else node
    told = (classes == CLASSES.index("communication")) & done
    found = []
    for process in profile.processes:
        mine = (thread >= 0) & (process_of[np.maximum(thread, 0)] == process.row) if process_of.size else thread >= 0
        windows = spans[mine & is_step]
        if not windows.size:
            continue
        work = np.isin(
            kind, [int(EventKind.KERNEL), int(EventKind.COLLECTIVE), int(EventKind.COPY), int(EventKind.SET)]
        )
        rows = [item.row for item in profile.devices if item.process == process.row]
        used = [row for row in rows if (work & (device == row)).any()]
        for row in used:
            here = work & done & (device == row)
            moves = np.isin(kind, [int(EventKind.COPY), int(EventKind.SET)])
            found.append((f"{profile.devices[row].name or 'device'} {profile.devices[row].index}", wall_split(
                windows, spans[here & ~told & ~moves], spans[here & told & ~moves], spans[here & moves]
            )))  # fmt: skip
        if not used:
            operators = mine & done & (kind == int(EventKind.OPERATOR))
            talking = (
                mine & told & np.isin(kind, [int(EventKind.OPERATOR), int(EventKind.REGION), int(EventKind.COLLECTIVE)])
            )
            label = "CPU" if len(profile.processes) == 1 else f"CPU of process {process.pid}"
            nothing: Intervals = np.zeros((0, 2), np.int64)
            found.append((label, wall_split(windows, spans[operators & ~told], spans[talking], nothing)))
    return found


def _shares(analysis: Analysis, nodes: Any, metric: str) -> list[Share]:
    tree = analysis.tree
    measures = tree.exclusive(metric)
    rows = np.ones(len(tree), np.bool_)
    if metric == "time":
        rows = (analysis.scopes.inner >= 0) & (tree.kinds != int(FrameKind.PYTHON))
    found = []
    for number, name in enumerate(CLASSES):
        here = rows & (nodes == number) & (measures.sum != 0)
        if here.any():
            found.append(Share(name, int(measures.sum[here].sum()), int(measures.count[here].sum())))
    return sorted(found, key=lambda share: -share.time_ns)


def _hot(analysis: Analysis, nodes: Any, metric: str) -> list[Hot]:
    tree, scopes = analysis.tree, analysis.scopes
    measures = tree.exclusive(metric)
    if metric == "gpu_time":
        listed = np.isin(tree.kinds, [int(kind) for kind in _DEVICE_FRAMES])
    else:
        listed = (tree.kinds == int(FrameKind.OPERATOR)) | generated_frames(tree)[tree.frame_of]
    rows = np.flatnonzero(listed & (measures.sum > 0) & (nodes != CLASSES.index(COMPILATION)))
    modules = {
        row: merged_layers(tree.text("name", int(tree.frame_of[row])))
        for row in np.unique(scopes.module).tolist()
        if row >= 0
    }
    groups: dict[tuple[str, str, str], list[int]] = {}
    words = PathWords(analysis, "", frames=False)
    for row in rows.tolist():
        place = words.place(row)
        shown = f"{place.short}:{place.line}" if place else ""
        name = tree.text("name", int(tree.frame_of[row]))  # not the frame: shapes make many of one operator
        groups.setdefault((name, shown, modules.get(int(scopes.module[row]), "")), []).append(row)
    ranked = sorted(groups.items(), key=lambda group: -int(measures.sum[group[1]].sum()))[:MOST_HOT]
    found = []
    for (name, shown, module), several in ranked:
        found.append(Hot(
            name=name, kind=tree.node(several[0]).kind, time_ns=int(measures.sum[several].sum()),
            calls=int(measures.count[several].sum()), place=shown, module=module,
        ))  # fmt: skip
    return found


def _peaks(analysis: Analysis) -> list[tuple[str, int]]:
    names = device_names(analysis.profile)
    return [(names[peak.device], peak.held) for peak in largest_peaks(analysis)]


def changes(now: Mapping[str, Any], before: Mapping[str, Any]) -> tuple[Change, ...]:
    """What differs by more than a hundredth from the summary before, as `as_json` made both."""
    found = []
    for name, value in now.get("figures", {}).items():
        old = before.get("figures", {}).get(name)
        if isinstance(old, int | float) and not isinstance(old, bool) and abs(value - old) > 0.01 * max(abs(old), 1):
            found.append(Change(name, float(old), float(value)))
    return tuple(found)
