"""Decoded Kineto events into columns, batch by batch.

A batch is sorted into categories and every category becomes arrays at once, which costs a fraction of a call per
event. A category in which one event is not as it should be is taken apart into single events: those that lack what
they need are counted in `malformed`, the others stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.trace.meaning import MODULE, STEP_MARKS, call_kind, is_step
from leadline.trace.tables import Kind

CATEGORIES: Mapping[str, Kind | None] = {
    "cpu_op": Kind.OPERATOR,
    "operator": Kind.OPERATOR,
    "user_annotation": Kind.REGION,
    "cuda_runtime": Kind.API,  # any name that ends like this or in _driver, whatever the vendor
    "runtime": Kind.API,
    "kernel": Kind.KERNEL,
    "gpu_memcpy": Kind.COPY,
    "memcpy": Kind.COPY,
    "gpu_memset": Kind.SET,
    "memset": Kind.SET,
    "python_function": Kind.MODULE,
    "cuda_sync": None,
}
DAMAGE = (KeyError, TypeError, AttributeError, ValueError, OverflowError)
"""What an event that is not as it should be raises while it is taken apart."""

_SHAPES, _OLD_SHAPES = "Input Dims", "Input dims"
_KEEP_DETAIL = frozenset((_SHAPES, _OLD_SHAPES, "grid", "Collective name", "bytes"))
_UNSIGNED = 2**62  # sequence numbers above are an unsigned -1
_FLOATS = ("ts", "dur")

Event = Mapping[str, Any]
Events = Sequence[Event]


class Rows:
    """Columns while reading: `ts` and `dur` in microseconds of the file, `position` the place in the file, the others
    as in EVENT_COLUMNS."""

    COLUMNS = ("ts", "dur", "position", "kind", "name", "thread", "device", "stream", "correlation", "sequence",
               "forward_thread", "bytes", "detail")  # fmt: skip
    DEFAULTS: Mapping[str, int] = {"thread": -1, "device": -1, "stream": -1, "correlation": 0, "sequence": -1,
                                   "forward_thread": -1, "bytes": 0, "detail": -1}  # fmt: skip

    def __init__(self) -> None:
        self._parts: dict[str, list[NDArray[Any]]] = {name: [] for name in self.COLUMNS}
        self.count = 0

    def add(self, count: int, **values: Any) -> None:
        """Append rows: a list or one number per column; all or nothing."""
        made = {}
        for name in self.COLUMNS:
            value = values.get(name, self.DEFAULTS.get(name, 0))
            made[name] = np.empty(count, dtype=np.float64 if name in _FLOATS else np.int64)
            made[name][:] = value
        for name, part in made.items():
            self._parts[name].append(part)
        self.count += count

    def columns(self) -> dict[str, NDArray[Any]]:
        """Every column in one piece; the parts are given up."""
        joined = {}
        for name, parts in self._parts.items():
            joined[name] = np.concatenate(parts) if parts else np.zeros(0)
            parts.clear()
        return joined


class Collector:
    """Takes batches of decoded events. `window_us` keeps what overlaps this range of the file's own clock;
    `marks_only` keeps nothing but step marks; `python` keeps the calls of Python functions that are no modules, too."""

    def __init__(
        self, window_us: tuple[float, float] | None = None, *, marks_only: bool = False, python: bool = False
    ) -> None:
        self._window = window_us
        self._python = python
        self._marks_only = marks_only
        self._position = 0
        self._kinds: dict[Any, Kind | int | None] = dict(CATEGORIES)
        self._call_kinds: dict[str, int] = {}
        self.rows = Rows()
        self.strings: dict[str, int] = {}
        self.details: list[Event] = []
        self.threads: dict[tuple[Any, int], int] = {}
        self._thread_rows: dict[tuple[Any, Any], int] = {}
        self.legacy = False
        """Whether every range is called an operator, as torch 1.8 to 1.11 do."""
        self.thread_names: dict[tuple[Any, Any], str] = {}
        self.flow_ends: dict[Any, list[tuple[str, int, float]]] = {}
        self.syncs: dict[int, tuple[int, int, int]] = {}
        self.memory: list[tuple[float, int, int]] = []
        self.malformed = 0

    def batch(self, events: Sequence[Any]) -> None:
        """Take a batch."""
        groups: dict[Any, tuple[list[Event], list[int]]] = {}
        position = self._position
        for event in events:
            position += 1
            try:
                phase = event["ph"]
                if phase == "X":
                    category = event.get("cat")
                    found = groups.get(category)
                    if found is None:
                        found = groups[category] = ([], [])
                    found[0].append(event)
                    found[1].append(position)
                elif phase != "f" and phase != "s":
                    self._single(event, phase)
                elif event.get("cat") == "fwdbwd":
                    self._flow(event, phase)
            except DAMAGE:
                self.malformed += 1
        self._position = position
        for category, (members, positions) in groups.items():
            self._category(category, members, positions)

    def _category(self, category: Any, events: list[Event], positions: list[int]) -> None:
        kind = self._kinds.get(category, -1)
        if kind == -1:
            kind = self._kinds[category] = _category_kind(category)
        if kind == -2 or (self._marks_only and kind not in (Kind.REGION, Kind.OPERATOR)):
            return
        self.legacy |= category == "Operator"
        take = _TAKERS[kind if kind is None else Kind(kind)]
        try:
            take(self, *self._inside(events, positions))
        except DAMAGE:
            for event, position in zip(events, positions, strict=True):
                try:
                    take(self, *self._inside([event], [position]))
                except DAMAGE:
                    self.malformed += 1

    def _inside(self, events: list[Event], positions: list[int]) -> tuple[list[Event], list[int]]:
        if self._window is None:
            return events, positions
        low, high = self._window
        chosen = [at for at, event in enumerate(events)
                  if event["ts"] <= high and event["ts"] + event.get("dur", 0) >= low]  # fmt: skip
        if len(chosen) == len(events):
            return events, positions
        return [events[at] for at in chosen], [positions[at] for at in chosen]

    # ------------------------------------------------------------------ one category at a time

    def operators(self, events: list[Event], positions: list[int]) -> None:
        if self._marks_only:  # torch 1.8 to 1.11 call the marks operators
            self.regions(events, positions)
            return
        args = _arguments(events)
        numbers = [found.get("Sequence number", -1) for found in args]
        self._add(
            events, positions, args, kind=int(Kind.OPERATOR), thread=self._threads(events),
            sequence=[number if number < _UNSIGNED else -1 for number in numbers],
            forward_thread=[found.get("Fwd thread id", -1) if number >= 0 else -1
                            for found, number in zip(args, numbers, strict=True)],
        )  # fmt: skip

    def calls(self, events: list[Event], positions: list[int]) -> None:
        args = _arguments(events)
        known = self._call_kinds
        for name in {event["name"] for event in events} - known.keys():
            known[name] = int(call_kind(name))
        self._add(
            events, positions, args, kind=[known[event["name"]] for event in events], thread=self._threads(events),
            correlation=[found.get("correlation", 0) for found in args],
        )  # fmt: skip

    def regions(self, events: list[Event], positions: list[int]) -> None:
        if self._marks_only:
            chosen = [at for at, event in enumerate(events) if event["name"].startswith(STEP_MARKS)]
            events, positions = [events[at] for at in chosen], [positions[at] for at in chosen]
        step, region = int(Kind.STEP), int(Kind.REGION)
        kinds = [step if is_step(event["name"]) else region for event in events]
        self._add(events, positions, _arguments(events), kind=kinds, thread=self._threads(events))

    def modules(self, events: list[Event], positions: list[int]) -> None:
        if not self._python:
            chosen = [at for at, event in enumerate(events) if event["name"].startswith(MODULE)]
            events, positions = [events[at] for at in chosen], [positions[at] for at in chosen]
        names = [event["name"].removeprefix(MODULE) for event in events]
        module, python = int(Kind.MODULE), int(Kind.PYTHON)
        kinds = [module if event["name"].startswith(MODULE) else python for event in events]
        self._add(events, positions, _arguments(events), names, kind=kinds, thread=self._threads(events))

    def kernels(self, events: list[Event], positions: list[int]) -> None:
        self._device(events, positions, Kind.KERNEL)

    def copies(self, events: list[Event], positions: list[int]) -> None:
        self._device(events, positions, Kind.COPY)

    def sets(self, events: list[Event], positions: list[int]) -> None:
        self._device(events, positions, Kind.SET)

    def _device(self, events: list[Event], positions: list[int], kind: Kind) -> None:
        args = _arguments(events)
        pairs = list(zip(args, events, strict=True))
        self._add(
            events, positions, args, kind=int(kind),
            device=[number(found.get("device", event.get("pid", 0))) for found, event in pairs],
            stream=[number(found.get("stream", event.get("tid", 0))) for found, event in pairs],
            correlation=[found.get("correlation", 0) for found in args],
            bytes=[found.get("bytes", 0) for found in args],
        )  # fmt: skip

    def synchronisations(self, events: list[Event], positions: list[int]) -> None:
        """cuda_sync records: which stream or event an API call waited for, by the call's correlation id."""
        found = {}
        for event in events:
            args = event["args"]
            waiting = _unknown(args.get("stream", -1))
            awaited = _unknown(args.get("wait_on_stream", waiting))
            if args.get("cuda_sync_kind") == "Stream Sync" and "wait_on_stream" not in args:
                awaited = waiting
            record = _unknown(args.get("wait_on_cuda_event_record_corr_id", -1))
            found[int(args["correlation"])] = (waiting, awaited, max(record, 0))
        self.syncs.update(found)

    # ------------------------------------------------------------------ inside

    def _add(
        self,
        events: list[Event],
        positions: list[int],
        args: list[Event],
        names: list[str] | None = None,
        **values: Any,
    ) -> None:
        if not events:
            return
        strings, kept = self.strings, len(self.details)
        texts = names if names is not None else [event["name"] for event in events]
        details = [-1] * len(events)
        for at, found in enumerate(args):
            if found and not _KEEP_DETAIL.isdisjoint(found):
                details[at] = len(self.details)
                self.details.append(found if _OLD_SHAPES not in found else {**found, _SHAPES: found[_OLD_SHAPES]})
        try:
            self.rows.add(
                len(events), ts=[event["ts"] for event in events], dur=[event.get("dur", 0) for event in events],
                position=positions, name=[strings.setdefault(text, len(strings)) for text in texts], detail=details,
                **values,
            )  # fmt: skip
        except DAMAGE:
            del self.details[kept:]
            raise

    def _threads(self, events: list[Event]) -> list[int]:
        known = self._thread_rows
        try:
            return [known[(event["pid"], event["tid"])] for event in events]
        except KeyError:
            return [self.thread_row(event["pid"], event["tid"]) for event in events]

    def thread_row(self, pid: Any, tid: Any) -> int:
        """Row of a thread; one thread may be written as a number here and as a text there."""
        row = self._thread_rows.get((pid, tid))
        if row is None:
            key = (int(pid) if isinstance(pid, str) and pid.isdigit() else pid, number(tid))
            row = self._thread_rows[(pid, tid)] = self.threads.setdefault(key, len(self.threads))
        return row

    def _flow(self, event: Event, phase: str) -> None:
        thread = self.thread_row(event["pid"], event["tid"])
        self.flow_ends.setdefault(event["id"], []).append((phase, thread, _moment(event["ts"])))

    def _single(self, event: Event, phase: Any) -> None:
        """Thread names and memory records."""
        if phase == "M" and event.get("name") == "thread_name":
            named = str(event.get("args", {}).get("name", ""))
            self.thread_names[(event["pid"], event["tid"])] = named
        elif phase == "i" and event.get("name") == "[memory]":
            args = event["args"]
            size, where = int(args["Bytes"]), int(args.get("Device Type", 0))
            if abs(size) >= _UNSIGNED or abs(where) >= _UNSIGNED:
                raise OverflowError("no amount of memory")
            self.memory.append((_moment(event["ts"]), size, where))


_TAKERS: Mapping[Kind | None, Callable[[Collector, list[Event], list[int]], None]] = {
    Kind.OPERATOR: Collector.operators,
    Kind.API: Collector.calls,
    Kind.REGION: Collector.regions,
    Kind.MODULE: Collector.modules,
    Kind.KERNEL: Collector.kernels,
    Kind.COPY: Collector.copies,
    Kind.SET: Collector.sets,
    None: Collector.synchronisations,
}
_NO_ARGUMENTS: Event = {}


def _category_kind(category: Any) -> Kind | int | None:
    """Kind of a category, -2 for one that is not read; capitals are those of torch up to 1.11."""
    if not isinstance(category, str):
        return -2
    lower = category.lower()
    return Kind.API if lower.endswith(("_runtime", "_driver")) else CATEGORIES.get(lower, -2)


def _arguments(events: list[Event]) -> list[Event]:
    return [found if isinstance(found := event.get("args"), dict) else _NO_ARGUMENTS for event in events]


def _moment(value: Any) -> float:
    """A time stamp. Raises ValueError for what is no number."""
    found = float(value)
    if not abs(found) < _UNSIGNED:
        raise ValueError(f"{found} is no time")
    return found


def _unknown(value: Any) -> int:
    """CUPTI's all-ones for "none" as -1."""
    found = number(value)
    return -1 if found >= 2**32 - 1 else found


def number(value: Any) -> int:
    """The value, or the first number in a text such as "stream 7"; 0 without any."""
    if isinstance(value, int):
        return value
    found = re.search(r"-?\d+", str(value))
    return int(found.group()) if found else 0
