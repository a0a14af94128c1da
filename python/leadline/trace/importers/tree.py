"""Event tables of others as profiles: the call tree is made of what the trace holds.

Ranges and operators stand by nesting, Python functions and modules where they were recorded, calls of the driver,
device work below the call that launched it, backward operators below their forward operator as in profiles of ours. The
events of the trace are the events of the window.

What a trace does not say is not made up: there is no CPU time, so the loop's thread is taken to run wherever it is not
seen to wait.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from leadline._dataclass import replace
from leadline.profiles.builder import ProfileBuilder
from leadline.profiles.profile import Profile
from leadline.profiles.tables import Tables
from leadline.schema import FrameKind, LossKind, MetricKind
from leadline.steps.names import is_loading, phase_of
from leadline.steps.of_events import find_steps, main_thread
from leadline.steps.recording import rows_of_events
from leadline.trace.allocator import History
from leadline.trace.event_types import is_backward_operator
from leadline.trace.importers import frames
from leadline.trace.importers.device_work import book_device_work, book_idle, busy_facts, device_rows
from leadline.trace.importers.forward import ForwardOperators
from leadline.trace.importers.meta import imported_meta
from leadline.trace.importers.spans import NO_FRAME, Around, Booked, Mask, Place, Rows, Spans, book
from leadline.trace.importers.window import event_columns
from leadline.trace.intervals import common, length, union
from leadline.trace.matching import with_matches
from leadline.trace.tables import CALL_KINDS, Device, Kind, Trace

_ASKS_FOR_BACKWARD = re.compile(r"run_backward|^#* *backward *#*$")
_PASSED_THROUGH = (Kind.PYTHON, Kind.OVERHEAD)
_SPAN_KINDS = (Kind.OPERATOR, Kind.REGION, Kind.MODULE, Kind.PYTHON, *CALL_KINDS)


def profile_of(trace: Trace, recorder: str) -> Profile:
    """The profile of one process's trace, which `recorder` made."""
    return Import(with_matches(trace), recorder).profile()


class Import:
    """One trace on its way into a profile."""

    span_kinds: tuple[Kind, ...] = _SPAN_KINDS

    def __init__(self, trace: Trace, recorder: str) -> None:
        self.trace = trace
        self.recorder = recorder
        self.builder = ProfileBuilder()
        events = trace.events
        self.main = main_thread(trace)
        self.steps = find_steps(trace)
        # rows of the trace's events that become spans: in order of start, outer first, as the trace has them
        self.spans: Rows = np.flatnonzero(np.isin(events["kind"], self.span_kinds) & (events["thread"] >= 0))
        names = [is_backward_operator(name) for name in trace.strings]
        self.backward: Mask = np.array(names, dtype=np.bool_)[events["name"]] & (events["kind"] == Kind.OPERATOR)
        self.without_forward = 0
        self.forward_thread: Rows = np.full(len(trace), -1, dtype=np.int64)

    def profile(self) -> Profile:
        trace, builder = self.trace, self.builder
        end_ns = int(trace.end_ns.max(initial=0))
        process = builder.process(
            trace.source, pid=self._pid(), rank=trace.rank, start_ns=trace.origin_ns, end_ns=trace.origin_ns + end_ns,
            complete=int(trace.complete),
        )  # fmt: skip
        threads = self._threads(process)
        roots = {row: builder.node_of_thread(made) for row, made in threads.items()}
        spans = self._spans()
        booked = self.book(spans, roots, threads)
        node: Rows = np.full(len(trace), -1, dtype=np.int64)
        node[self.spans] = booked.node
        devices = self._devices(process)
        unattributed = self.book_devices(node, builder.node_of_process(process), devices)
        book_idle(builder, trace, node, devices)
        self._book_waits(node, booked)
        self._book_samples(roots)
        if self.without_forward:
            builder.loss(process, LossKind.BACKWARD_WITHOUT_FORWARD, self.without_forward)
        if unattributed:
            builder.loss(process, LossKind.GPU_RECORD_UNATTRIBUTED, unattributed, "The trace does not hold its launch.")
        for sentence in trace.warnings:
            count = trace.unread.get(sentence, 0)
            builder.loss(process, LossKind.TRACE_EVENTS_UNREAD if count else LossKind.TRACE_REMARK, count, sentence)
        shown = node >= 0
        passed_through = (spans.frame == NO_FRAME) & np.isin(trace.events["kind"][self.spans], _PASSED_THROUGH)
        shown[self.spans[passed_through]] = False
        del spans, passed_through
        self._record_steps(threads)
        tables = builder.tables()
        columns = {
            **tables.columns,
            "threads": self._thread_times(tables["threads"], threads, booked),
            "events": event_columns(
                self._with_phases(),
                np.flatnonzero(shown),
                node,
                self.forward_thread,
                self.steps,
                threads=threads,
                devices=devices,
                loop=(roots.get(self.main, 0), threads.get(self.main, -1)),
            ),
        }
        return Profile(Tables(columns), self._meta(end_ns))

    def book(self, spans: Spans, roots: Mapping[int, int], threads: Mapping[int, int]) -> Booked:
        """Adds the spans to the tree. `roots`, `threads`: node and row in the profile of each thread of the trace."""
        return book(self.builder, spans, roots, self._place_of(threads))

    def book_devices(self, node: Rows, process_node: int, devices: Mapping[int, int]) -> int:
        """Adds what devices did, and sets `node` of it; how much of it has no launch."""
        return book_device_work(self.builder, self.trace, node, process_node, devices)

    # ------------------------------------------------------------------ processes, threads and devices

    def _pid(self) -> int:
        pid = self.trace.threads[self.main].process if self.main >= 0 else 0
        return pid if isinstance(pid, int) and 0 <= pid < 2**32 else 0

    def _threads(self, process: int) -> dict[int, int]:
        """Row of the profile's threads for each thread of the trace with spans. The loop's thread is called main and
        has the number of its process, as in profiles of ours."""
        used = set(np.unique(self.trace.events["thread"][self.spans]).tolist())
        used |= set(self.trace.events["thread"][self.trace.of_kind(Kind.STEP)].tolist()) | ({self.main} - {-1})
        used |= {thread for thread, *_ in self.trace.facts.get("samples", ())}
        ordered = sorted(used - {-1}, key=lambda row: (row != self.main, row))
        tids = {row: abs(self.trace.threads[row].tid) for row in ordered}
        if self._pid():
            tids[self.main] = self._pid()
        return {row: self.builder.thread(process, self._thread_name(row), tid=tids[row]) for row in ordered}

    def _thread_name(self, row: int) -> str:
        thread = self.trace.threads[row]
        return "main" if row == self.main else thread.name or f"thread {thread.tid}"

    def _devices(self, process: int) -> dict[int, int]:
        """Row of the profile's devices for each number of a device that did something."""
        trace = self.trace
        known = {device.index: device for device in trace.devices}
        made = {}
        for index in np.unique(trace.events["device"][device_rows(trace)]).tolist():
            device = known.get(index)
            name = device.name if device and device.name else "GPU"
            made[index] = self.builder.device(
                process, index, name, memory_bytes=device.memory_bytes if device else 0,
                detail=json.dumps({**busy_facts(trace, index), **_facts(device)}),
            )  # fmt: skip
        return made

    # ------------------------------------------------------------------ spans

    def _spans(self) -> Spans:
        events, rows = self.trace.events, self.spans
        kind = events["kind"][rows]
        loading = np.array([is_loading(name) for name in self.trace.strings], dtype=np.bool_)[events["name"][rows]]
        return Spans(
            thread=events["thread"][rows].astype(np.int64),
            start_ns=events["start_ns"][rows],
            end_ns=self.trace.end_ns[rows],
            frame=self._frames(rows, kind),
            timed=~np.isin(kind, (Kind.MODULE, Kind.PYTHON)),
            operator=kind == Kind.OPERATOR,
            loading=loading & (kind == Kind.REGION),
        )

    def _frames(self, rows: Rows, kind: Rows) -> Rows:
        """Frame of every span; modules get theirs where they stand."""
        trace = self.trace
        known: dict[tuple[int, int, str], int] = {}
        standard = frames.files_of_python(trace.strings)
        found: Rows = np.full(rows.size, NO_FRAME, dtype=np.int64)
        name, detail = trace.events["name"][rows].tolist(), trace.events["detail"][rows].tolist()
        for place in np.flatnonzero(kind != Kind.MODULE).tolist():
            one, more = int(kind[place]), detail[place]
            facts = frames.operator_facts(trace.details[more]) if more >= 0 and one == Kind.OPERATOR else ""
            key = (one, name[place], facts)
            if key not in known:
                known[key] = frames.span_frame(self.builder, Kind(one), trace.strings[name[place]], facts, standard)
            found[place] = known[key]
        return found

    def _place_of(self, threads: Mapping[int, int]) -> Place:
        """Modules go below each other and the phase `forward`, backward operators below their forward operators; those
        that have none (they add up gradients) below the call that asked another thread for the backward pass."""
        trace, builder, rows = self.trace, self.builder, self.spans
        asks = np.array([_ASKS_FOR_BACKWARD.search(name) is not None for name in trace.strings], dtype=np.bool_)
        asking: list[bool] = asks[trace.events["name"][rows]].tolist()
        asked = [-1]  # row of the innermost call that did so last
        ends, starts = trace.end_ns[rows], trace.events["start_ns"][rows]
        thread = trace.events["thread"][rows]
        on_helper: list[bool] = np.isin(thread, self._backward_threads()).tolist()
        helpers = {
            row: builder.frame(
                FrameKind.PHASE, "on another thread", detail=json.dumps({"thread": self._thread_name(row)})
            )
            for row in threads
        }
        forward = ForwardOperators(trace, rows, self.backward[rows])
        is_backward = self.backward[rows].tolist()
        is_module = (trace.events["kind"][rows] == Kind.MODULE).tolist()
        phases = {name: builder.frame(FrameKind.PHASE, name) for name in ("forward", "backward")}
        paths: dict[int, str] = {}  # of module spans

        def place(row: int, around: Around, nodes: list[int]) -> int:
            if asking[row]:
                asked[0] = row
            if is_module[row]:
                above = next((one for one in reversed(around.rows) if is_module[one]), -1)
                name = trace.strings[int(trace.events["name"][rows[row]])]
                paths[row] = f"{paths[above]}.{name}" if above >= 0 else name
                outermost = above < 0 and not any(is_backward[one] for one in around.rows)
                below = builder.child(around.node, phases["forward"]) if outermost else around.node
                return builder.child(below, frames.module_frame(builder, paths[row]))
            if is_backward[row] and not any(is_backward[one] for one in around.rows):
                found = forward.of(row)
                if found >= 0:
                    self.forward_thread[rows[row]] = trace.events["thread"][rows[found]]
                    return builder.child(nodes[found], phases["backward"])
                self.without_forward += forward.has_number(row)
            if not around.rows and on_helper[row]:
                host = asked[0]
                if host >= 0 and thread[host] != thread[row] and starts[row] < ends[host]:
                    return builder.child(nodes[host], helpers[int(thread[row])])
            return around.node

        return place

    def _backward_threads(self) -> Rows:
        """Threads besides the loop's that run backward operators."""
        threads = np.unique(self.trace.events["thread"][self.backward])
        found: Rows = threads[threads != self.main]
        return found

    def _waited_for_backward(self) -> int:
        """Time in which the loop's thread had neither operator nor call open while another ran the backward pass."""
        events = self.trace.events
        outer = np.isin(events["kind"], (Kind.OPERATOR, *CALL_KINDS))
        others = self.backward & np.isin(events["thread"], self._backward_threads())
        theirs, own = (
            union(events["start_ns"][mask], self.trace.end_ns[mask])
            for mask in (others, outer & (events["thread"] == self.main))
        )
        return length(theirs) - common(theirs, own)

    def _book_samples(self, roots: Mapping[int, int]) -> None:
        """Sampled stacks, below their thread: a stack does not say in which call of an operator it was taken."""
        for thread, stack, ns in self.trace.facts.get("samples", ()):
            node = roots[thread]
            for function, module in stack:
                node = self.builder.child(node, self.builder.frame(FrameKind.NATIVE, function, file=module))
            self.builder.add(node, MetricKind.CPU_SAMPLE, ns)

    def _book_waits(self, node: Rows, booked: Booked) -> None:
        starts = self.trace.events["start_ns"][self.spans]
        for place in np.flatnonzero(self.trace.events["kind"][self.spans] == Kind.SYNCHRONIZE).tolist():
            row = int(self.spans[place])
            self.builder.add(int(node[row]), MetricKind.SYNC_TIME, int(booked.end_ns[place] - starts[place]))

    # ------------------------------------------------------------------ tables

    def _with_phases(self) -> Trace:
        """The trace as capture would have recorded it: ranges that are parts of a step are phases."""
        events = self.trace.events
        phase = np.array([phase_of(name) is not None for name in self.trace.strings], dtype=np.bool_)
        kind = np.where((events["kind"] == Kind.REGION) & phase[events["name"]], Kind.PHASE, events["kind"])
        return replace(self.trace, events={**events, "kind": kind.astype(events["kind"].dtype)})

    def _thread_times(self, table: Mapping[str, Any], threads: Mapping[int, int], booked: Booked) -> dict[str, Any]:
        """CPU time is what a thread had operators or calls open; the loop's thread also runs in between, unless another
        one runs its backward pass. Waits for a device spin, as our own profiles have it where nothing else is known."""
        columns = {name: values.copy() for name, values in table.items()}
        for row, made in threads.items():
            mine = self.trace.events["thread"] == row
            start, end = self.trace.events["start_ns"][mine], self.trace.end_ns[mine]
            wall = int(end.max(initial=0) - start.min(initial=int(end.max(initial=0))))
            ran = wall - self._waited_for_backward() if row == self.main else booked.timed_ns.get(row, 0)
            columns["operator_ns"][made] = booked.operator_ns.get(row, 0)
            columns["data_ns"][made] = booked.data_ns.get(row, 0)
            columns["wall_ns"][made] = wall
            columns["cpu_ns"][made] = max(ran, 0)
        return columns

    def _record_steps(self, threads: Mapping[int, int]) -> None:
        if self.main in threads:
            self.builder.main_thread(threads[self.main])
            rows = rows_of_events(self.trace, self.steps, self.main, self.backward)
            if rows.spans:
                self.builder.steps(threads[self.main], rows)

    def _meta(self, end_ns: int) -> dict[str, Any]:
        trace = self.trace
        return imported_meta(
            trace.source, self.recorder, pid=self._pid(), rank=trace.rank, world_size=trace.world_size,
            origin_ns=trace.origin_ns, wall_ns=end_ns, complete=trace.complete,
            estimated=f"Made from {self.recorder}, which holds no CPU time: Python's share is an estimate.",
            allocators=self.allocators(), recorder_options=self.trace.facts.get("recorder"),
        )  # fmt: skip

    def allocators(self) -> Sequence[History]:
        """What allocators said of themselves; nothing where the trace does not hold it."""
        return ()


def _facts(device: Device | None) -> dict[str, object]:
    """What a trace says of a device, by the names of our own providers."""
    if device is None:
        return {"compute_capability": ""}
    units = {"multiprocessors": device.multiprocessors} if device.multiprocessors else {}
    lanes = {"wavefront": device.lanes} if device.lanes and device.name.startswith("AMD ") else {}
    return {"compute_capability": device.compute_capability, **units, **lanes}
