"""How much of its steps a trace window shows the device busy."""

from __future__ import annotations

import numpy as np

from leadline.profiles import Profile
from leadline.schema import EventKind
from leadline.steps.completion import DEVICE_KINDS
from leadline.trace.intervals import common, length, union


def busy_share(profile: Profile) -> float:
    """Of the time of the window's steps, until the last was done, the part in which any device worked (0 to 1);
    -1 where the window has no step or no device work."""
    events = profile.events
    kind = np.asarray(events["kind"])
    start = np.asarray(events["start_ns"]).astype(np.int64)
    end = start + np.maximum(np.asarray(events["duration_ns"]), 0)
    work = np.isin(kind, DEVICE_KINDS) & (np.asarray(events["device"]) >= 0)
    marks = kind == int(EventKind.STEP)
    if not work.any() or not marks.any():
        return -1.0
    low, high = int(start[marks].min()), int(max(end[marks].max(), end[work].max()))
    window = np.array([low], np.int64), np.array([high], np.int64)
    return min(1.0, common(union(start[work], end[work]), window) / max(length(window), 1))
