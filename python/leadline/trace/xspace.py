"""Profiles of XLA and TensorFlow (XSpace, `.xplane.pb`) into event tables, with what only they have: which operation of
which compiled program an event executed, and which run of it.

A profile is planes of lines of events. Planes of the host have a line per thread; planes of devices one per stream, and
lines that were derived from these (modules, steps, name scopes), which are left out where the streams are there.
Times count from the start of the profile, which the plane "Task Environment" tells.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.trace import xspace_tensors
from leadline.trace.allocator import History
from leadline.trace.event_types import call_kind, device_kind
from leadline.trace.source import Source, whole_of
from leadline.trace.tables import EVENT_COLUMNS, Device, Kind, Thread, Trace, TraceError, distinct
from leadline.trace.xspace_allocator import NUMBERS, TEXT, allocators
from leadline.trace.xspace_details import copy_name, facts_of, host_of, launch, moved, program_number
from leadline.trace.xspace_stats import NOT_SAID, Rows, Stat, Stats, in_order, of_lines
from leadline.xla.events import REGION_BEGINS, REGION_ENDS, Event, Named, named
from leadline.xla.recorded import DAY_NS, origin_ns, thread_of, whole

Few = NDArray[np.int32]

_NUMBERS = (
    *("program_id", "run_id", "device_ordinal", "correlation_id", "step_num", "_pt", "_p", "_ct", "_c"),
    *NUMBERS,
    *xspace_tensors.NUMBERS,
)
_TEXTS = (
    *("hlo_op", "hlo_module", "tf_op", "kernel_details", "memcpy_details", "memset_details", TEXT),
    *xspace_tensors.TEXTS,
)
_METADATA = "/host:metadata"
_DEVICE = re.compile(r"^/device:(?P<type>[A-Za-z_]+):(?P<index>\d{1,4})$")
_STEPS = "Steps"
_BEGUN_BY_PYTHON = (Event.CALL, Event.PYTHON, Event.BUILTIN, Event.RANGE)
_DRIVER = re.compile(r"^(?:cu|cuda|hip|nccl|rccl)[A-Z]")
_HOST = "/host:"
_REGION = (REGION_BEGINS, REGION_ENDS)
_LARGEST = 2**31 - 1
"""Bytes that one of these files can hold: a message of protocol buffers."""


@dataclass(frozen=True)
class Space:
    """A profile. Every array has a row per event of `trace`; what few events tell has rows for these.

    operation: row of `operations` (number of the program, name of the instruction), -1 for what executes none.
    run: the run of the program that it belongs to, as any number; -1 where nothing tells.
    ordinal: the device of an operation that a thread of the host executed, -1 where nothing tells.
    produces, consumes: a number that the event which asked for something and the one that did it share.
    meaning: row of `meanings`, what a name of a host thread's event is.
    held: bytes of the allocator after an allocation or free. `address`: of what it was about.
    programs: name and HloModuleProto of each program that the profile carries, by its number.
    host: name of the machine, as the profile has it or else the file, which profilers name so.
    """

    trace: Trace
    operation: Few
    operations: Sequence[tuple[int, str]]
    run: Few
    ordinal: NDArray[np.int16]
    produces: Stat
    consumes: Stat
    meaning: Few
    meanings: Sequence[Named]
    held: Stat
    address: Stat
    allocators: Sequence[History]  # what each said of itself
    programs: Mapping[int, tuple[str, bytes]]
    host: str
    tensors: Sequence[xspace_tensors.End]  # what devices and processes handed each other


def read_xspace(source: Source) -> Space:
    """The events of one host. Raises TraceError."""
    from leadline import _xla

    data = whole_of(source, _LARGEST, "which no profile of XLA can have; record a shorter one")
    found = _xla.profile(data, list(_NUMBERS), list(_TEXTS))
    del data
    if found["problem"]:
        raise TraceError(f"{source.name}: {found['problem']} Record it again, or copy the whole file.")
    space = _Reader(found, source.name).space()
    if not len(space.trace):
        raise TraceError(
            f"{source.name} is a profile of XLA without any event; record it while the program runs, with "
            "jax.profiler.trace or tf.profiler.experimental"
        )
    return space


class _Reader:
    """What the native reader found, on its way into tables."""

    def __init__(self, found: Mapping[str, Any], name: str) -> None:
        self._name = name
        self._planes: list[tuple[str, dict[str, str]]] = found["planes"]
        self._lines: list[tuple[int, int, str]] = [line[:3] for line in found["lines"]]
        self._places: list[tuple[int, int]] = [line[3:] for line in found["lines"]]
        self._hosts: list[str] = found["hosts"]
        self._strings: list[str] = found["strings"]
        self._programs = {program_number(text, key): (text, module) for key, text, module in found["programs"]}
        self._complaints: list[str] = found["complaints"]
        self._base_ns: int = found["base_ns"]
        self._events: dict[str, NDArray[Any]] = {name: np.asarray(column) for name, column in found["events"].items()}
        self._stats = Stats(found["stats"], self._events["line"].size)
        self._details: list[Mapping[str, Any]] = []

    def space(self) -> Space:
        threads, devices = self._threads(), {row: place for row, place in enumerate(self._places) if place[1] >= 0}
        lines = len(self._lines)
        line_of = self._events.pop("line")
        thread = np.array([threads.get(row, (-1, None))[0] for row in range(lines)], np.int32)[line_of]
        places = np.array([devices.get(row, (-1, -1)) for row in range(lines)], np.int32).reshape(-1, 2)
        device, stream = (of_lines(places[:, side], line_of) for side in (0, 1))
        marks = self._steps_of_devices(line_of)
        meanings, meaning = self._meanings(thread)
        self._let_last(meanings, meaning, line_of)
        del line_of
        quiet = np.array([one.event == Event.MARK for one in meanings] or [False], np.bool_)[np.maximum(meaning, 0)]
        on_host, on_device = thread >= 0, (device >= 0) & ~marks
        has_step = self._stats.says("step_num")
        own_steps = bool((has_step & on_host).any())
        stepping = (has_step & on_host) | (marks & (not own_steps))
        shown = (on_host & ~(quiet & (meaning >= 0) & ~self._stats.flows())) | on_device | stepping
        del quiet, marks, has_step, on_device
        start_ps, lasted_ps = self._events["start_ps"], self._events["duration_ps"]
        usable = (start_ps >= 0) & (start_ps < DAY_NS * 1000) & (lasted_ps < DAY_NS * 1000)
        lost = int((shown & ~usable).sum())
        rows = in_order(np.flatnonzero(shown & usable), start_ps, lasted_ps)
        del shown, usable
        start_ns = start_ps[rows] // 1000
        duration_ns = (start_ps[rows] + lasted_ps[rows]) // 1000 - start_ns
        del start_ps, lasted_ps, self._events["start_ps"], self._events["duration_ps"]
        thread = np.where(stepping & ~on_host, 0 if threads else -1, thread)[rows]
        stepping, meaning = stepping[rows], meaning[rows]
        columns = {
            "start_ns": start_ns,
            "duration_ns": duration_ns,
            "thread": thread,
            "device": np.where(stepping, -1, device[rows]) if devices else device[rows],
            "stream": np.where(stepping, -1, stream[rows]) if devices else stream[rows],
            "correlation": self._stats.number("correlation_id", 0, rows),
            "bytes": self._stats.number("allocation_bytes", 0, rows),
        }
        del device, stream
        strings = list(self._strings)
        kind, names, detail = self._kinds(rows, columns, meaning, meanings, stepping, strings)
        columns |= {"kind": kind, "name": names, "detail": detail}
        nothing = {"awaits_correlation": 0}
        events = {
            name: np.asarray(columns[name]).astype(column, copy=False)
            if name in columns
            else np.broadcast_to(np.array(nothing.get(name, -1), column), rows.size)
            for name, column in EVENT_COLUMNS.items()
        }
        del columns, start_ns, duration_ns, kind, names, detail
        warnings = [f"the profiler says: {complaint}" for complaint in self._complaints]
        if lost:
            warnings.append(f"{lost} events lie more than a day after the first, or last longer; they are left out")
        operation, operations = self._operations(rows)
        trace = Trace(
            events=events,
            strings=strings,
            details=self._details,
            threads=[made for _, made in sorted(threads.values(), key=lambda one: one[0]) if made is not None],
            devices=[self._device(index) for index in sorted({index for index, _ in devices.values()})],
            rank=-1,  # no profile of XLA says which of a job's it is
            world_size=0,
            source=self._name,
            origin_ns=self._origin_ns(),
            warnings=tuple(warnings),
            facts=_main_thread(events, np.where(operation >= 0, -1, meaning), meanings),
        )
        return Space(
            trace=trace,
            operation=operation,
            operations=operations,
            run=self._runs(rows),
            ordinal=self._stats.number("device_ordinal", -1, rows).clip(-1, 2**15 - 1).astype(np.int16),
            produces=self._stats.joined("_pt", "_p", rows),
            consumes=self._stats.joined("_ct", "_c", rows),
            meaning=np.where(thread >= 0, meaning, -1),
            meanings=meanings,
            held=self._stats.stat("bytes_allocated", rows),
            address=self._stats.stat("addr", rows),
            allocators=allocators(self._stats, rows, events["start_ns"], meaning, meanings, self._strings),
            programs=self._programs,
            tensors=xspace_tensors.tensors(
                *(self._stats, rows, events["start_ns"], events["duration_ns"]),
                *(np.asarray(events["thread"]), np.where(thread >= 0, meaning, -1), meanings, self._strings),
            ),
            host=host_of(self._hosts, self._name),
        )

    # ------------------------------------------------------------------ lines

    def _threads(self) -> dict[int, tuple[int, Thread | None]]:
        """Row of the trace's threads by line. Lines of several planes may be of one thread."""
        known: dict[tuple[int, str], int] = {}
        found: dict[int, tuple[int, Thread | None]] = {}
        for row, (plane, number, name) in enumerate(self._lines):
            host = self._planes[plane][0]
            if not host.startswith(_HOST) or host == _METADATA or host.startswith("/host:__"):
                continue
            tid, text, told = thread_of(number, name)
            text = "" if text == "Host Threads" else text
            key = (tid, "" if told else text)
            first = key not in known
            place = known.setdefault(key, len(known))
            found[row] = (place, Thread(0, host, tid, text) if first else None)
        return found

    def _steps_of_devices(self, line_of: NDArray[Any]) -> NDArray[np.bool_]:
        """Which events are the steps, as devices tell them. All devices tell the same ones, so those of one stand for
        all: of the first with the most."""
        steps = [row for row, (_, _, name) in enumerate(self._lines) if name == _STEPS and self._places[row][0] >= 0]
        if not steps:
            return np.broadcast_to(np.False_, line_of.size)
        events = np.bincount(line_of, minlength=len(self._lines))
        return np.asarray(line_of == min(steps, key=lambda row: (-events[row], self._places[row][0], row)))

    def _device(self, index: int) -> Device:
        for name, stats in self._planes:
            device = _DEVICE.match(name)
            if device is not None and int(device["index"]) == index:
                major = stats.get("compute_cap_major", "")
                return Device(
                    index=index,
                    name=stats.get("gpu_device_name")
                    or stats.get("device_type_string")
                    or name.removeprefix("/device:"),
                    memory_bytes=whole(stats.get("memory_size", "")),
                    compute_capability=f"{major}.{stats.get('compute_cap_minor', '0')}" if major else "",
                    multiprocessors=whole(stats.get("core_count", "")),
                )
        return Device(index)

    def _origin_ns(self) -> int:
        """CLOCK_REALTIME at time 0 of the columns, as far as the profile says."""
        return origin_ns(self._planes, self._base_ns)

    # ------------------------------------------------------------------ events

    def _let_last(self, meanings: Sequence[Named], meaning: Few, line_of: NDArray[Any]) -> None:
        """What a thread of a pool did for another one lasts from the mark of its begin to that of its end."""
        marks = np.array(
            [(REGION_BEGINS, REGION_ENDS).index(one.name) if one.name in _REGION else -1 for one in meanings]
        )
        if not (marks >= 0).any():
            return
        start_ps = self._events["start_ps"]
        rows = np.flatnonzero((meaning >= 0) & (marks[np.maximum(meaning, 0)] >= 0))
        rows = rows[np.lexsort((start_ps[rows], line_of[rows]))]
        ends = marks[meaning[rows]] == 1
        following = np.flatnonzero(~ends[:-1] & ends[1:])
        begun, ended = rows[following], rows[following + 1]
        same = line_of[begun] == line_of[ended]
        lasted = self._events["duration_ps"]
        lasted[begun[same]] = start_ps[ended[same]] - start_ps[begun[same]]

    def _meanings(self, thread: Few) -> tuple[list[Named], Few]:
        """What each name of an event on a host thread is, and the row of it for every event; -1 for other events."""
        name = self._events["name"]
        used = np.zeros(len(self._strings), np.bool_)
        used[name[thread >= 0]] = True
        texts = np.flatnonzero(used)
        place = np.full(len(self._strings), -1, np.int32)
        place[texts] = np.arange(texts.size, dtype=np.int32)
        meaning = place[name]
        meaning[thread < 0] = -1
        return [named(self._strings[text]) for text in texts.tolist()], meaning

    def _kinds(
        self,
        rows: Rows,
        columns: dict[str, NDArray[Any]],
        meaning: Few,
        meanings: Sequence[Named],
        stepping: NDArray[np.bool_],
        strings: list[str],
    ) -> tuple[NDArray[Any], Few, NDArray[Any]]:
        """Kind, name and detail of every event; `strings` gets the names that are new."""
        known = {text: row for row, text in reversed(list(enumerate(strings)))}

        def row_of(text: str) -> int:
            place = known.setdefault(text, len(strings))
            if place == len(strings):
                strings.append(text)
            return place

        own = self._events.pop("name")[rows]
        name = own.astype(np.int32)
        on_host = columns["thread"] >= 0
        kinds = np.array([int(_kind(one)) for one in meanings] or [0], np.uint8)
        texts = np.array([row_of(one.name) for one in meanings] or [0], np.int32)
        kind = np.where(meaning >= 0, kinds[np.maximum(meaning, 0)], np.uint8(Kind.KERNEL))
        name = np.where(meaning >= 0, texts[np.maximum(meaning, 0)], name)
        operation = self._stats.text("hlo_op", rows)
        executes = (operation != 0) & on_host
        kind[executes], name[executes] = int(Kind.OPERATOR), operation[executes]
        device = ~on_host
        for place in np.unique(name[device]).tolist():
            kind[device & (name == place)] = int(device_kind(strings[place], Kind.KERNEL))
        steps = np.flatnonzero(stepping)
        kind[steps] = int(Kind.STEP)
        numbers = self._stats.number("step_num", NOT_SAID, rows[steps]).tolist()
        for row, number in zip(steps.tolist(), numbers, strict=True):
            text = self._strings[int(own[row])]
            name[row] = row_of(text if number == NOT_SAID else f"{text} {number}")
        return kind, name, self._shapes(rows, columns, kind, name, row_of)

    def _shapes(
        self, rows: Rows, columns: dict[str, NDArray[Any]], kind: NDArray[Any], name: Few, row_of: Any
    ) -> NDArray[Any]:
        """Rows of details with the shape of a launch; copies and sets get their direction and their bytes."""
        detail = np.broadcast_to(np.int64(-1), rows.size)
        for column, found_kind, told in (
            ("kernel_details", Kind.KERNEL, launch),
            ("memcpy_details", Kind.COPY, moved),
            ("memset_details", Kind.SET, moved),
        ):
            texts = self._stats.text(column, rows)
            for text in np.unique(texts[texts != 0]).tolist():
                mine = (texts == text) & (columns["thread"] < 0)
                facts = told(facts_of(self._strings[text]))
                kind[mine] = int(found_kind)
                columns["bytes"] = np.where(mine, facts.pop("bytes", 0), columns["bytes"])
                if found_kind == Kind.KERNEL:
                    detail = np.where(mine, len(self._details), detail)
                    self._details.append(facts)
                else:
                    for place in np.unique(name[mine]).tolist():
                        name[mine & (name == place)] = row_of(copy_name(self._strings[place], facts))
        return detail

    def _operations(self, rows: Rows) -> tuple[Few, list[tuple[int, str]]]:
        """Which operation each event executed: by its program's number, else by the name of its module."""
        name = self._stats.text("hlo_op", rows)
        by_name = {text.partition("(")[0]: number for number, (text, _) in self._programs.items()}
        found = np.full(rows.size, -1, np.int32)
        executes = np.flatnonzero(name != 0)
        mine = rows[executes]
        columns = (
            name[executes],
            self._stats.number("program_id", NOT_SAID, mine),
            self._stats.text("hlo_module", mine),
        )
        first, found[executes] = distinct(*columns)
        operations = []
        for text, number, inside in zip(*(column[first].tolist() for column in columns), strict=True):
            if number == NOT_SAID:
                number = by_name.get(self._strings[inside].partition("(")[0], NOT_SAID)
            operations.append((number, self._strings[text]))
        return found, operations

    def _runs(self, rows: Rows) -> Few:
        """Runs of programs as numbers from 0, by what tells them apart."""
        run = self._stats.stat("run_id", rows)
        found = np.full(rows.size, -1, np.int32)
        found[run.rows] = np.unique(run.values, return_inverse=True)[1]
        return found


def _main_thread(events: Mapping[str, NDArray[Any]], meaning: Few, meanings: Sequence[Named]) -> dict[str, int]:
    """The thread with the program's loop: that of its steps, else with most of what only Python begins; pools have more
    operators than it. Empty where nothing tells."""
    begins = np.array([one.event in _BEGUN_BY_PYTHON for one in meanings] or [False], np.bool_)
    for found in (events["kind"] == Kind.STEP, begins[np.maximum(meaning, 0)] & (meaning >= 0)):
        threads = events["thread"][found & (events["thread"] >= 0)]
        if threads.size:
            return {"main_thread": int(np.bincount(threads).argmax())}
    return {}


def _kind(one: Named) -> Kind:
    if one.event in (Event.PYTHON, Event.BUILTIN):
        return Kind.PYTHON
    if one.event in (Event.CALL, Event.NODE, Event.PIPELINE):
        return Kind.OPERATOR
    if one.event in (Event.MARK, Event.PASSES):
        return Kind.OVERHEAD  # not shown, and still tells who asked for what
    if one.event in (Event.ALLOCATE, Event.FREE):
        return Kind.ALLOCATE
    if one.event == Event.RUNTIME and _DRIVER.match(one.name):
        return call_kind(one.name)
    return Kind.REGION
