"""The device's lane of the account: busy by class of work, idle by what the critical thread did meanwhile."""

from __future__ import annotations

import numpy as np

from leadline._dataclass import replace
from leadline.analysis.case import Case
from leadline.analysis.columns import Mask
from leadline.analysis.overlap import Intervals, wall_split
from leadline.analysis.workclass import classes_of_nodes
from leadline.schema import EventKind, FrameKind
from leadline.verdict.model import Account, Part
from leadline.verdict.places import Places
from leadline.work.kernels import class_of_kernel
from leadline.work.operators import CLASSES

_WORK = [int(kind) for kind in (EventKind.KERNEL, EventKind.COPY, EventKind.SET, EventKind.COLLECTIVE)]
_IDLE_LABELS = {
    "launch": "the device is idle while the CPU launches",
    "unrecorded": "the thread waits for work of CUDA graphs, whose kernels the trace does not hold",
    "data": "the device is idle while the thread waits for data",
    "device": "the device has no work after a wait for it",
    "ranks": "the device waits for other ranks",
    "core": "the device waits while the CPU's thread waits for a core",
    "compile": "the device waits while the CPU compiles",
}


def with_devices(case: Case, made: Account) -> Account:
    """The account with the lane of the device that did most, where there is one."""
    if not case.has_device or made.of != "step":
        return made
    busy_share = _busy(case, made)
    if busy_share is None:
        return made
    busy = int(busy_share * made.wall_ns)
    parts = [*_busy_parts(case, made, busy), *_idle_parts(made, made.wall_ns - busy, case)]
    return replace(made, parts=(*made.parts, *parts))


def _busy(case: Case, made: Account) -> float | None:
    """Share of the step in which the device that is busiest had work: from its events, else from its own sums."""
    events = case.profile.events
    device = events["device"].astype(np.int64)
    mine = (device >= 0) & (events["duration_ns"] > 0) & np.isin(events["kind"], _WORK)
    if mine.any():
        steps = (events["kind"] == int(EventKind.STEP)) & (events["duration_ns"] > 0)
        begin = events["start_ns"].astype(np.int64)
        spans: Intervals = np.stack([begin, begin + events["duration_ns"].astype(np.int64)], axis=1)
        if steps.any():
            window = np.array([[spans[steps][:, 0].min(), spans[steps][:, 1].max()]], np.int64)
        else:
            window = np.array([[spans[mine][:, 0].min(), spans[mine][:, 1].max()]], np.int64)
        none = np.zeros((0, 2), np.int64)
        found = [
            wall_split(window, spans[mine & (device == one)], none, none) for one in np.unique(device[mine]).tolist()
        ]
        return max((1 - one.idle_ns / one.window_ns for one in found if one.window_ns > 0), default=None)
    details = [one.detail for one in case.profile.devices]
    work = float(case.gpu_time.sum()) / case.loop.steps / max(len(_devices(case)), 1)
    for detail in details:
        busy, parts = (
            detail.get("busy_ns"),
            [detail.get(name) for name in ("compute_ns", "copy_ns", "communication_ns")],
        )
        if isinstance(busy, int) and all(isinstance(one, int) for one in parts):
            whole = sum(one for one in parts if isinstance(one, int))
            work *= min(1.0, busy / whole) if whole > 0 else 1.0
            break
    return min(1.0, work / made.wall_ns) if made.wall_ns > 0 else None


def _devices(case: Case) -> list[int]:
    metrics = case.tree.tables["metrics"]
    from leadline.schema import MetricKind

    here = (metrics["metric"] == int(MetricKind.GPU_TIME)) & (metrics["count"] > 0)
    return [one for one in np.unique(metrics["device"][here]).tolist() if one >= 0]


def _busy_parts(case: Case, made: Account, busy: int) -> list[Part]:
    tree = case.tree
    time = case.gpu_time.astype(np.float64)
    whole = float(time.sum())
    if whole <= 0 or busy <= 0:
        return []
    classes = classes_of_nodes(tree).copy()
    rows = np.flatnonzero(time > 0)
    other = CLASSES.index("other")
    for row in rows[(classes[rows] < 0) | (classes[rows] == other)].tolist():
        classes[row] = CLASSES.index(class_of_kernel(tree.text("name", int(tree.frame_of[row]))))
    copies = tree.kinds == int(FrameKind.COPY)
    classes = np.where(copies, CLASSES.index("copy"), classes)
    places = Places(case)
    parts = []
    for number in np.unique(classes[rows]).tolist():
        here = rows[classes[rows] == number]
        ns = int(busy * float(time[here].sum()) / whole)
        found = places.of(here, time[here] * busy / whole, functions=False)
        name = CLASSES[number] if number >= 0 else "unknown"
        label = "kernels of no known class" if name == "unknown" else "copies" if name == "copy" else name
        parts.append(Part(name, label, "device", "busy", ns, ns / made.wall_ns, "measured", 0, found))
    return sorted(parts, key=lambda one: -one.ns)


def _idle_parts(made: Account, idle: int, case: Case) -> list[Part]:
    """Idle time is charged to what the critical thread did: waits for data, ranks, a core or the compiler as far as
    they last, a wait for the device only where it is idle meanwhile, the rest to launching."""
    left = max(idle, 0)
    if not left:
        return []
    parts = []
    graphs = case.matching(FrameKind.API, "(?i)GraphLaunch") & case.loop.inside
    if graphs.any() and (waited := min(left, made.ns("device"))) > 0.1 * made.wall_ns:
        found = next((one.places for one in made.lane("thread") if one.key == "device"), ())
        parts.append(
            Part(
                "unrecorded",
                _IDLE_LABELS["unrecorded"],
                "device",
                "idle",
                waited,
                waited / made.wall_ns,
                "estimated",
                0,
                found,
            )
        )
        left -= waited
    for key in ("data", "compile", "ranks", "core", "device"):
        ns = min(left, made.ns(key))
        if key == "device":
            ns = min(ns, _dry(case, made))
        if ns <= 0:
            continue
        found = next((one.places for one in made.lane("thread") if one.key == key), ())
        parts.append(Part(key, _IDLE_LABELS[key], "device", "idle", ns, ns / made.wall_ns, "estimated", 0, found))
        left -= ns
    if left:
        found = Places(case).of(*_idle_places(case), functions=False)
        parts.append(
            Part("launch", _IDLE_LABELS["launch"], "device", "idle", left, left / made.wall_ns, "estimated", 0, found)
        )
    return sorted(parts, key=lambda one: -one.ns)


def _dry(case: Case, made: Account) -> int:
    """A wait for a busy device is no cause of idle time: at most the idle time charged below waits."""
    idle = np.where(case.loop.inside, case.tree.exclusive("gpu_idle_time").sum, 0)
    return int(idle.sum() / case.loop.steps) if idle.any() else made.ns("device") // 10


def _idle_places(case: Case) -> tuple[np.ndarray, np.ndarray]:
    idle = np.where(case.loop.inside, case.tree.exclusive("gpu_idle_time").sum, 0) / case.loop.steps
    mask: Mask = idle > 0
    if not mask.any():
        launches = np.where(case.loop.inside, case.loop.time, 0) / case.loop.steps
        mask, idle = launches > 0, launches
    rows = np.flatnonzero(mask)
    return rows, idle[rows]
