"""What a profile says, in the oracle's words: from its tables of metrics and events."""

from __future__ import annotations

from collections import Counter

import numpy as np
from tests.agree.oracle import Sums

from leadline.profiles.profile import Profile
from leadline.schema import EventKind, FrameKind, MetricKind

DEVICE_FRAMES = (FrameKind.KERNEL, FrameKind.COPY, FrameKind.COLLECTIVE)


def _name(profile: Profile, node: int) -> str:
    return profile.tree.text("name", int(profile.tree.frame_of[node]))


def _kind(profile: Profile, node: int) -> int:
    return int(profile.tree.frames["kind"][profile.tree.frame_of[node]])


def of_tree(profile: Profile, kind: FrameKind) -> Sums:
    """Calls and their whole time by the name of frames of this kind."""
    found, metrics = Sums(), profile.tables["metrics"]
    for row in np.flatnonzero(metrics["metric"] == MetricKind.CALL_TIME).tolist():
        node = int(metrics["node"][row])
        if _kind(profile, node) == kind:
            found.count[_name(profile, node)] += int(metrics["count"][row])
            found.total[_name(profile, node)] += int(metrics["sum"][row])
    return found


def of_events(profile: Profile, *kinds: EventKind) -> Sums:
    """Events of these kinds and their durations by name."""
    found, events = Sums(), profile.events
    for row in np.flatnonzero(np.isin(events["kind"], [int(kind) for kind in kinds])).tolist():
        found.add(_name(profile, int(events["node"][row])), int(events["duration_ns"][row]))
    return found


def of_device(profile: Profile) -> Sums:
    """Device work and its time by (name, device, stream)."""
    found, metrics = Sums(), profile.tables["metrics"]
    for row in np.flatnonzero(metrics["metric"] == MetricKind.GPU_TIME).tolist():
        device = profile.devices[int(metrics["device"][row])].index
        key = (_name(profile, int(metrics["node"][row])), device, int(metrics["stream"][row]))
        found.count[key] += int(metrics["count"][row])
        found.total[key] += int(metrics["sum"][row])
    return found


def launched(profile: Profile) -> tuple[Counter[tuple[str, str | None]], int]:
    """How many pieces of device work of a name each operator launched, and how many have no launch."""
    found: Counter[tuple[str, str | None]] = Counter()
    lost, metrics, parent = 0, profile.tables["metrics"], profile.tree.parent
    for row in np.flatnonzero(metrics["metric"] == MetricKind.GPU_TIME).tolist():
        node = int(metrics["node"][row])
        count, name, at = int(metrics["count"][row]), _name(profile, node), int(parent[node])
        called = _kind(profile, at) == FrameKind.API
        while at >= 0 and _kind(profile, at) != FrameKind.OPERATOR:
            at = int(parent[at])
        if called:
            found[name, _name(profile, at) if at >= 0 else None] += count
        else:
            lost += count
    return found, lost


def of_own_time(profile: Profile) -> dict[str, int]:
    """Exclusive time by name."""
    found: Counter[str] = Counter()
    metrics = profile.tables["metrics"]
    for row in np.flatnonzero(metrics["metric"] == MetricKind.TIME).tolist():
        found[_name(profile, int(metrics["node"][row]))] += int(metrics["sum"][row])
    return dict(found)
