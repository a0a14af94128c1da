"""What a rank spent on what, as a few named numbers that are kept for every rank.

    wall, cpu           of its main thread, from the first to the last event
    communication       in operators and regions that are communication, waits included; what another thread did of it
                        counts as far as the main thread had nothing else to do
    time PHASE          in operators, regions and API calls outside communication; `other` is outside every phase
    outside operators   of the main thread: wall less all of the above; Python, waits, idleness
    gpu_time PHASE      on the device, outside collectives; `gpu_time communication` in them
    peak                bytes alive at the peak, of the device that has most
    steps               steps that were timed, from end to end, and that time
    first step          counted for each first step that ended without a known beginning, so that it is not in `steps`
    collectives         collectives begun (by the operators that issue them), and the time that took
    attached            counted once where measuring was begun from outside, so that the rank had begun more of them

All are nanoseconds but peak and the counts. A rank that waits for another one spends more on communication; what tells
the other one is what it spends on everything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from leadline.profiles.communication import device_communication, says_communication
from leadline.profiles.fold.keys import key_parts
from leadline.profiles.fold.state import Column, Ids, Sums, ThreadSums
from leadline.profiles.fold.wide import as_int64
from leadline.profiles.rollup import Shape
from leadline.schema import FrameKind, MetricKind

Values = dict[str, tuple[int, int]]

_PHASE, _THREAD, _PROCESS = int(FrameKind.PHASE), int(FrameKind.THREAD), int(FrameKind.PROCESS)
_OPERATOR = int(FrameKind.OPERATOR)
_ISSUERS = (b"c10d::", b"_c10d_functional::", b"c10d_functional::")
_AWAY = "on another thread"
_PASSED = ("step", "turn", "garbage collection", "saving", "recomputation ends", _AWAY)
"""Phases that say nothing of the kind of work below them."""


def rank_values(
    keys: Sequence[bytes], shape: Shape, frame: Ids, sums: Mapping[Column, Sums], mains: Sequence[ThreadSums]
) -> Values:
    """See above; `mains`: the main threads of the rank's processes, one for each time it was started."""
    meant = _Meaning(keys, shape, frame)
    found: Values = {}
    for (metric, _, _), one in sums.items():
        if metric == MetricKind.TIME:
            meant.add(found, one, "time", meant.talks)
        elif metric == MetricKind.GPU_TIME:
            meant.add(found, one, "gpu_time", meant.device_talks)
        elif metric == MetricKind.CALL_TIME:
            meant.add_counted(found, one)
    _join_communication(found, sum(one.wall_ns for one in mains))
    peaks: dict[int, int] = {}
    for (metric, device, _), one in sums.items():
        if metric == MetricKind.PEAK_LIVE_BYTES:
            peaks[device] = peaks.get(device, 0) + int(as_int64(one.total).sum())
    if peaks:
        found["peak"] = (max(peaks.values()), 1)
    if mains:
        wall, cpu = sum(one.wall_ns for one in mains), sum(one.cpu_ns for one in mains)
        inside = sum(value for name, (value, _) in found.items() if name.startswith("time ") or name == "communication")
        found["wall"], found["cpu"] = (wall, len(mains)), (cpu, len(mains))
        found["outside operators"] = (max(wall - inside, 0), len(mains))
    return found


def _join_communication(found: Values, wall_ns: int) -> None:
    """Work of another thread (a reducer's, a backend's) runs beside the main thread's: it is waited for where the main
    thread spends the time on nothing else, and hidden elsewhere."""
    here, begun = found.pop("time communication", (0, 0))
    away, done = found.pop("time elsewhere", (0, 0))
    if begun or done:
        busy = sum(value for name, (value, _) in found.items() if name.startswith("time "))
        found["communication"] = here + min(away, max(wall_ns - busy - here, 0)), begun + done


class _Meaning:
    """Per node: the phase around it, whether it is communication."""

    def __init__(self, keys: Sequence[bytes], shape: Shape, frame: Ids) -> None:
        self._names = [""]
        phase_of: list[int] = []
        flags: list[list[bool]] = [[] for _ in range(6)]
        talks, device_talks, begins, away, steps, issues = flags
        known: dict[str, int] = {}
        for phase, *said in map(_meaning_of, keys):
            phase_of.append(known.setdefault(phase, len(known) + 1) if phase else 0)
            for column, flag in zip(flags, said, strict=True):
                column.append(flag)
        self._names += list(known)
        self._steps = np.array(steps, np.bool_)[frame]
        self._collectives = np.array(issues, np.bool_)[frame]
        own = np.array(phase_of, np.int64)[frame]
        border = np.array(begins, np.bool_)[frame]
        self.phase = own[_nearest(shape, (own > 0) | border)]
        communicates = np.array(talks, np.bool_)[frame]
        self.talks = communicates[_nearest(shape, communicates | border)]
        elsewhere = np.array(away, np.bool_)[frame]
        self._elsewhere = elsewhere[_nearest(shape, elsewhere | border)]
        self.device_talks = self.talks | np.array(device_talks, np.bool_)[frame]

    def add(self, found: Values, one: Sums, what: str, apart: NDArray[np.bool_]) -> None:
        """Add sums by phase, those `apart` (per node) under the name communication."""
        code = np.where(apart[one.node], len(self._names), self.phase[one.node])
        if what == "time":
            away = self._elsewhere[one.node]
            code = np.where(away, np.where(apart[one.node], len(self._names) + 1, len(self._names) + 2), code)
        totals = np.zeros(len(self._names) + 3, np.int64)
        counts = np.zeros(len(self._names) + 3, np.int64)
        np.add.at(totals, code, np.maximum(as_int64(one.total), 0))
        np.add.at(counts, code, one.count)
        names = [*self._names, "communication", "elsewhere", ""]  # what else another thread did is not this one's
        for name, total, count in zip(names[:-1], totals.tolist(), counts.tolist(), strict=False):
            if count:
                _add(found, f"{what} {name or 'other'}", total, count)

    def add_counted(self, found: Values, one: Sums) -> None:
        """Add the steps that ended and the collectives that began."""
        for name, wanted in (("steps", self._steps), ("collectives", self._collectives)):
            here = wanted[one.node]
            if here.any():
                _add(found, name, int(as_int64(one.total)[here].sum()), int(one.count[here].sum()))


def _add(found: Values, name: str, total: int, count: int) -> None:
    before = found.get(name, (0, 0))
    found[name] = (before[0] + total, before[1] + count)


@lru_cache(maxsize=1 << 17)
def _meaning_of(key: bytes) -> tuple[str, bool, bool, bool, bool, bool, bool]:
    """Of a frame the phase that it begins (empty for none), and whether it is communication, communication of a device,
    a thread or process, work of another thread, a step, or issues a collective (waiting for one is none). Ranks of a
    job have the same frames, so most answers are known."""
    kind, name, _, _, _, _, _, detail = key_parts(key)
    text = name.decode("utf-8", "replace")
    phase = kind == _PHASE
    return (
        text if phase and text not in _PASSED else "",
        says_communication(kind, detail.decode("utf-8", "replace")),
        device_communication(kind, text),
        kind in (_THREAD, _PROCESS),
        phase and text == _AWAY,
        phase and text == "step",
        kind == _OPERATOR and name.startswith(_ISSUERS) and b"wait" not in name,
    )


def _nearest(shape: Shape, wanted: NDArray[np.bool_]) -> Ids:
    """The innermost wanted node at or above every node; the root where there is none."""
    at = np.where(wanted, np.arange(shape.size), shape.parent)
    at[:1] = 0
    while not np.array_equal(further := at[at], at):
        at = further
    return at
