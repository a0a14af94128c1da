"""Puts what is known of a TensorFlow program into the profile: exact counts and times of what Python called, and times
of nodes and of stages of tf.data, estimated from windows.
"""

from __future__ import annotations

import json
import os

from leadline.capture.native import Native
from leadline.capture.providers.booked import Booked, Total, own_total, total
from leadline.capture.providers.tensorflow.graphs import Graphs, communicates
from leadline.capture.providers.tensorflow.memory import Memory
from leadline.capture.providers.tensorflow.recorded import Sums
from leadline.capture.providers.tensorflow.runs import Key, function_name
from leadline.capture.providers.tensorflow.windows import ASKED, Windows
from leadline.capture.providers.torch.waits import COMMUNICATION
from leadline.xla.parts import Frame

_POOL: Frame = ("phase", "on another thread", "", "", json.dumps({"pool": "TensorFlow"}), 0, 0, 0)
"""Nodes run on the caller's thread or on TensorFlow's own, which are not among those of the profile."""
_PIPELINE: tuple[Frame, ...] = (
    ("phase", "data loading", "", "", "", 0, 0, 0),
    ("region", "tf.data", "", "", json.dumps({"time": "estimated"}), 0, 0, 0),
)
_LOADING = ("IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional")


class Booking:
    """What has been put in so far, so that each run is put in once."""

    def __init__(self, native: Native, graphs: Graphs, windows: Windows) -> None:
        self._booked = Booked(native)
        self._graphs = graphs
        self._windows = windows
        self._runs: dict[Key, tuple[int, int]] = {}

    def book(self, totals: dict[Key, list[int]], *, last: bool) -> int:
        """Put in all runs that are new; those of functions without times wait for the `last` call. Returns how many of
        those there were."""
        untimed = 0
        for key, (count, spent_ns, shortest, longest) in list(totals.items()):
            before, before_ns = self._runs.get(key, (0, 0))
            new, new_ns = count - before, spent_ns - before_ns
            function = function_name(key[1])
            timed = self._windows.functions.get(key[1]) if function is not None else None
            if new <= 0 or (function is not None and timed is None and not last):
                continue
            self._runs[key] = (count, spent_ns)
            whole = total("call_time", new, new_ns, shortest, longest)
            if function is None:
                self._operation(key, whole)
            elif timed is None or not timed.nodes:
                untimed += new
                self._booked.put(key[0], (_function(function, "measured as a whole"),), [whole, ("time", *whole[1:])])
            else:
                self._function(key, function, new, whole, timed, totals)
        return untimed

    def book_stages(self, totals: dict[Key, list[int]]) -> tuple[int, int]:
        """Put in the stages of tf.data, which run on threads of their own, as windows saw them, for all elements that
        the program asked for. Returns how many of those were seen, and how many there were."""
        asked = self._windows.stages.get(ASKED)
        seen = 0 if asked is None else asked[0]
        every = max(self._elements(totals), seen)
        for stage, (count, whole_ps, own_ps, shortest_ps, longest_ps) in self._windows.stages.items():
            scale = every / seen if seen and stage.startswith(ASKED) else 1.0
            times = max(round(count * scale), 1)
            whole_ns, own_ns = round(whole_ps * scale / 1000), round(own_ps * scale / 1000)
            own = own_total(times, own_ns, whole_ns, longest_ps // 1000)
            call = total("call_time", times, whole_ns, shortest_ps // 1000, longest_ps // 1000)
            self._booked.put(-1, stage_frames(stage), [own, call])
        self._windows.stages = {}
        return seen, every

    def _elements(self, totals: dict[Key, list[int]]) -> int:
        """How often the program asked for one: by an operation, which is counted, or by a node of a function, each
        call of which does so as often as those in windows."""
        every = 0.0
        for (_, name), (count, *_) in totals.items():
            if name in _LOADING:
                every += count
            elif (timed := self._windows.functions.get(name)) is not None and timed.runs:
                # an iterator's node may hold no thread until it has the element
                known = (*timed.nodes.items(), *timed.elsewhere.items())
                inside = sum(values[0] for (_, kind), values in known if kind in _LOADING)
                every += count * inside / timed.runs
        return round(every)

    def book_memory(self, memory: Memory) -> None:
        """Put in what was made and given back where, and what was alive at the peak."""
        for key, held in memory.held.items():
            totals = [total("alloc_bytes", held.made, held.made_bytes, held.smallest, held.largest)]
            if held.gone:
                totals.append(total("free_bytes", held.gone, held.gone_bytes, held.smallest, held.largest))
            alive, alive_bytes = memory.at_peak.get(key, (0, 0))
            if alive:
                totals.append(total("peak_live_bytes", alive, alive_bytes, held.smallest, held.largest))
            self._booked.put(key[0], call_frames(key[1], self._windows), totals)

    def _operation(self, key: Key, whole: Total) -> None:
        self._booked.put(key[0], _of_operation(key[1]), [whole, ("time", *whole[1:])])

    def _function(
        self, key: Key, function: str, new: int, whole: Total, timed: Sums, totals: dict[Key, list[int]]
    ) -> None:
        top = _function(function, "estimated")
        self._booked.put(key[0], (top,), [whole])
        # early calls are slow: the nodes of a call cannot take longer than all cores for as long as a call took
        whole_ns = sum(spent[1] for other, spent in totals.items() if other[1] == key[1])
        calls = sum(spent[0] for other, spent in totals.items() if other[1] == key[1])
        own_ps = sum(values[2] for values in timed.nodes.values())
        most_ps = 1000 * (os.cpu_count() or 1) * timed.runs * whole_ns / calls
        scale = min(most_ps / own_ps if own_ps > 0 else 1.0, 1.0) * new / timed.runs / 1000
        for (node, kind), (count, whole_ps, own_ps, shortest_ps, longest_ps) in timed.nodes.items():
            times = max(round(count * new / timed.runs), 1)
            own_ns = round(own_ps * scale)
            call_ns = round(whole_ps * scale)
            booked = [
                own_total(times, own_ns, call_ns, longest_ps // 1000),
                total("call_time", times, call_ns, shortest_ps // 1000, longest_ps // 1000),
                *_beside(timed, (node, kind), new / timed.runs),
            ]
            self._booked.put(key[0], (top, *node_frames(self._graphs, key[1], node, kind)), booked)
        for (node, kind), values in timed.elsewhere.items():
            waited = _scaled("wait_time", values, new / timed.runs, 1000)
            frames = (top, *node_frames(self._graphs, key[1], node, kind))
            self._booked.put(key[0], frames, [waited, ("call_time", *waited[1:])])


def _beside(timed: Sums, key: tuple[str, str], scale: float) -> list[Total]:
    """Memory and waiting of a node, as windows saw them, for all calls."""
    found = []
    if (taken := timed.taken.get(key)) is not None:
        found.append(_scaled("temporary_bytes", taken, scale, 1))
    if (waits := timed.waits.get(key)) is not None:
        found.append(_scaled("ready_wait", waits, scale, 1000))
    if (queued := timed.queued.get(key)) is not None:
        found.append(_scaled("queue_wait", queued, scale, 1000))
    return found


def _scaled(metric: str, values: list[int], scale: float, unit: int) -> Total:
    """Count, sum, smallest and largest of windows as a total of all calls."""
    count, value, smallest, largest = values
    return total(metric, max(round(count * scale), 1), round(value * scale / unit), smallest // unit, largest // unit)


def call_frames(name: str, windows: Windows) -> tuple[Frame, ...]:
    """What Python called: an operation, or a function, which says whether its nodes have times."""
    function = function_name(name)
    if function is None:
        return _of_operation(name)
    timed = windows.functions.get(name)
    return (_function(function, "estimated" if timed is not None and timed.nodes else "measured as a whole"),)


def node_frames(graphs: Graphs, function: str, node: str, kind: str) -> tuple[Frame, ...]:
    """Of a node below the call of its function."""
    frames = graphs.frames(function, node, kind)
    return (_POOL, _PIPELINE[0], *frames) if kind in _LOADING else (_POOL, *frames)


def stage_frames(stage: str) -> tuple[Frame, ...]:
    """Of a stage of tf.data, which belongs to no call."""
    return (_POOL, *_PIPELINE, ("operator", stage, "", "", "", 0, 0, 0))


def _of_operation(kind: str) -> tuple[Frame, ...]:
    """An operation, in the phase that it makes."""
    frame: Frame = ("operator", kind, "", "", COMMUNICATION if communicates(kind) else "", 0, 0, 0)
    if kind in _LOADING:
        return (_PIPELINE[0], frame)
    return (frame,)


def _function(name: str, time: str) -> Frame:
    return ("operator", f"tf.function({name})", "", "", json.dumps({"time": time}), 0, 0, 0)
