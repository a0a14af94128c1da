"""Tensors that TensorFlow's executors hand each other, between devices and between processes (`_Send`, `_Recv`).

A profile tells when a `_Send` ran and with which key of the rendezvous, and when a `_Recv` asked for its tensor and had
it. Steps have one number in all processes, and the partitioner numbers the two ends of an edge one after the other
(`Relu/_1`, `Relu/_2`), so who sent what somebody received follows from names, not from times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leadline.trace.xspace_stats import NOT_SAID, Rows, Stats
from leadline.xla.events import Event, Named

NUMBERS = ("id", "step_id")
TEXTS = ("name", "kernel_type", "key")
ASKS, HAS = "ExecutorState::ProcessAsync::Start", "ExecutorState::ProcessAsync::Done"
_PROCESS = "ExecutorState::Process"

End = tuple[int, str, int, int, int, str]
"""Number of the step, name of the node, 1 for one that sends, begin and end in ns, and the key of what is sent."""


def tensors(
    stats: Stats,
    rows: Rows,
    start_ns: Rows,
    duration_ns: Rows,
    thread: NDArray[np.int32],
    meaning: NDArray[np.int32],
    meanings: Sequence[Named],
    strings: Sequence[str],
) -> list[End]:
    """Both ends of what was handed over, as far as they are in this profile. `rows`: of the trace's events."""
    sends = [one.event == Event.NODE and one.name in ("_Send", "_HostSend") for one in meanings]
    sent = np.flatnonzero(np.array([*sends, False], np.bool_)[meaning])
    kind = stats.text("kernel_type", rows)
    if not sent.size and not kind.any():
        return []
    text = [one.name for one in meanings]
    found: list[End] = []
    key, node, step = stats.text("key", rows), stats.text("name", rows), stats.number("step_id", NOT_SAID, rows)
    around = _Steps(np.flatnonzero(_named(text, _PROCESS)[meaning]), start_ns, duration_ns, thread)
    number = stats.number("id", NOT_SAID, rows)
    for row in sent.tolist():
        outer = around.of(row)
        if outer >= 0 and number[outer] != NOT_SAID:
            begin = int(start_ns[row])
            end = begin + int(duration_ns[row])
            found.append((int(number[outer]), meanings[meaning[row]].scope, 1, begin, end, strings[key[row]]))
    waiting: dict[tuple[int, str], list[int]] = {}
    asks, has = _named(text, ASKS), _named(text, HAS)
    for row in np.flatnonzero((asks | has)[meaning] & (step != NOT_SAID) & (node != 0)).tolist():
        if strings[kind[row]] not in ("_Recv", "_HostRecv"):
            continue
        which = (int(step[row]), strings[node[row]])
        if asks[meaning[row]]:
            waiting.setdefault(which, []).append(int(start_ns[row]))
        elif waiting.get(which):
            found.append((*which, 0, waiting[which].pop(0), int(start_ns[row]), ""))
    return found


class _Steps:
    """The runs of the executor around events, by thread."""

    def __init__(self, rows: Rows, start_ns: Rows, duration_ns: Rows, thread: NDArray[np.int32]) -> None:
        self._start, self._end, self._thread = start_ns, start_ns + duration_ns, thread
        self._of = {int(one): rows[thread[rows] == one] for one in np.unique(thread[rows])}

    def of(self, row: int) -> int:
        """The innermost one that holds an event; -1 for none."""
        mine = self._of.get(int(self._thread[row]), np.empty(0, np.int64))
        at = int(np.searchsorted(self._start[mine], self._start[row], side="right"))
        return next((int(one) for one in mine[:at][::-1] if self._end[one] >= self._end[row]), -1)


def _named(texts: Sequence[str], wanted: str) -> NDArray[np.bool_]:
    """Of which meanings that is the name; the last is of no meaning."""
    return np.array([*(text == wanted for text in texts), False], np.bool_)
