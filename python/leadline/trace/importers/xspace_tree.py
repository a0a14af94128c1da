"""A profile of XLA or TensorFlow as a calling context tree.

Spans of the host stand by nesting. What a thread of a pool did for another one stands below the call that asked for
it, in a phase `on another thread`: the profile's flows say who that was, else the number of the run. Operations of a
compiled program stand below the call of the program, on the lines and in the modules that they were made from, as in
profiles of ours; those of devices likewise, with the kernel at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline._dataclass import replace
from leadline.profiles.profile import Profile
from leadline.schema import LossKind, MetricKind
from leadline.trace.allocator import History
from leadline.trace.importers import device_work, xspace_frames
from leadline.trace.importers.levels import Nodes, dealt, levels_of, nearest, nodes_of, shared, totals
from leadline.trace.importers.spans import NO_FRAME, Booked, Mask, Rows, Spans
from leadline.trace.importers.tree import Import
from leadline.trace.importers.xspace_buffers import unbuffered
from leadline.trace.importers.xspace_memory import book_memory
from leadline.trace.importers.xspace_runs import Dataflow, reported_runs
from leadline.trace.tables import CALL_KINDS, Kind
from leadline.trace.xspace import Space
from leadline.xla.events import Event
from leadline.xla.parts import program_name

if TYPE_CHECKING:
    from leadline._xla import Program

_HIDDEN = (Kind.OVERHEAD, Kind.ALLOCATE)
_SHARED = (
    *(MetricKind.TIME, MetricKind.CALL_TIME, MetricKind.GPU_TIME),
    *(MetricKind.COPY_BYTES, MetricKind.SET_BYTES),
)
_UNTIMED = (Kind.PYTHON, *_HIDDEN)


def profile_of(space: Space, recorder: str) -> Profile:
    """The profile of one host's XSpace."""
    return _XspaceImport(space, recorder).profile()


class _XspaceImport(Import):
    """Arrays have a row per event of the trace; what they hold counts in such rows."""

    span_kinds = (Kind.OPERATOR, Kind.REGION, Kind.PYTHON, *_HIDDEN, *CALL_KINDS)

    def __init__(self, space: Space, recorder: str) -> None:
        super().__init__(space.trace, recorder)
        self.unread = 0
        self.programs = self._read_programs(space)
        self.space, buffered = unbuffered(space, self.programs)
        space = self.space
        kind = self.trace.events["kind"]
        self.thread: Rows = self.trace.events["thread"].astype(np.int64)
        self.is_span: Mask = np.isin(kind, self.span_kinds) & (self.thread >= 0)
        self.is_device: Mask = (self.trace.events["device"] >= 0) & (self.thread < 0)
        self.executes: Mask = space.operation >= 0
        calls = np.array([one.event == Event.CALL for one in space.meanings] or [False], np.bool_)
        waits = np.array([one.event == Event.WAITS for one in space.meanings] or [False], np.bool_)
        self.waits: Mask = waits[np.maximum(space.meaning, 0)] & (space.meaning >= 0) & self.is_span
        self.is_call: Mask = calls[np.maximum(space.meaning, 0)] & (space.meaning >= 0) & self.is_span
        self.run = reported_runs(space, self.programs, self.executes & (self.is_span | self.is_device))
        self.call_of_run: Rows = np.zeros(0, np.int64)
        self.dataflow: dict[str, Any] = {}
        self.frames = xspace_frames.Frames(self.builder, space, self.programs, buffered)
        self.nodes = Nodes(np.zeros(0, np.int64), np.zeros(0, np.int32), [])
        self.unlaunched = 0
        self.repeated: Mask = np.zeros(len(self.trace), np.bool_)

    def _read_programs(self, space: Space) -> dict[int, Program]:
        from leadline import _xla

        found = {}
        for number, (_, module) in space.programs.items():
            try:
                found[number] = _xla.Program(module)
            except ValueError:
                self.unread += 1
        return found

    # ------------------------------------------------------------------ who stands below whom

    def book(self, spans: Spans, roots: Mapping[int, int], threads: Mapping[int, int]) -> Booked:
        """See `Import.book`."""
        above, end_ns, own_ns = self._nested()
        self.repeated = self.is_call & self._again(above)
        root = np.zeros(len(self.trace), np.int64)
        for row, node in roots.items():
            root[self.thread == row] = node
        process_node = self.builder.node_of_process(0)
        root[self.is_device] = process_node
        parent, crossed = self._asked(above, root)
        levels_of(parent)
        self._below_calls(parent, root, crossed, nearest(parent, self.is_call))
        level = levels_of(parent)
        alone = self.executes & (parent < 0)
        self.unlaunched = int((self.is_device & (parent < 0)).sum())
        key = self.frames.keys(crossed, alone, self.repeated)
        del above, alone, crossed  # of a large trace each is as much as a column of it
        self.nodes = nodes_of(parent, level, root, key, self.frames.below)
        del parent, level, root, key
        self._book_times(own_ns, end_ns)
        del own_ns
        book_memory(self.builder, self.space, self.nodes.node)
        rows = self.spans
        operators = self._inside(rows, end_ns, spans.operator & ~spans.loading)
        loading = self._inside(rows, end_ns, spans.loading)
        # threads of pools run no Python, so what they do between operators is not taken for it
        return Booked(self.nodes.node[rows], end_ns[rows], operators, loading, operators)

    def _spans(self) -> Spans:
        events, rows = self.trace.events, self.spans
        kind = events["kind"][rows]
        loads = np.array([xspace_frames.is_loading(one) for one in self.space.meanings] or [False], np.bool_)
        loading = loads[np.maximum(self.space.meaning[rows], 0)] & (self.space.meaning[rows] >= 0)
        return Spans(
            thread=self.thread[rows],
            start_ns=events["start_ns"][rows],
            end_ns=self.trace.end_ns[rows],
            frame=np.where(np.isin(kind, _HIDDEN), NO_FRAME, 0),
            timed=~np.isin(kind, _UNTIMED),
            operator=kind == Kind.OPERATOR,
            loading=loading,
        )

    def _nested(self) -> tuple[Rows, Rows, Rows]:
        """The span around each span, its end cut to that, and what of its time is its own."""
        from leadline._events import nest

        rows = self.spans
        kind = self.trace.events["kind"][rows]
        columns = (self.thread[rows].astype(np.int32), self.trace.events["start_ns"][rows], self.trace.end_ns[rows])
        timed = ~np.isin(kind, _UNTIMED) & ~self.waits[rows]
        outer = np.asarray(nest(*columns, timed.astype(np.uint8))[0])
        timed &= ~self._repeats(rows, outer)
        inner, end, own, _ = nest(*columns, timed.astype(np.uint8))
        above = np.full(len(self.trace), -1, np.int64)
        inner = np.asarray(inner)
        above[rows] = np.where(inner >= 0, rows[np.maximum(inner, 0)], -1)
        end_ns, own_ns = self.trace.end_ns.copy(), np.full(len(self.trace), -1, np.int64)
        end_ns[rows] = end
        own_ns[rows[timed]] = np.asarray(own)[timed]
        return above, end_ns, own_ns

    def _repeats(self, rows: Rows, outer: Rows) -> Mask:
        """Calls that stand directly in a call of the same function: jaxlib opens two ranges for one."""
        name = self.trace.events["name"][rows]
        found: Mask = (outer >= 0) & self.is_call[rows] & (name == name[np.maximum(outer, 0)])
        return found & self.is_call[rows][np.maximum(outer, 0)]

    def _again(self, above: Rows) -> Mask:
        name = self.trace.events["name"]
        found: Mask = (above >= 0) & self.is_call[np.maximum(above, 0)] & (name == name[np.maximum(above, 0)])
        return found

    def _asked(self, above: Rows, root: Rows) -> tuple[Rows, Mask]:
        """The parents of all spans, where what a thread did for another stands below that one's call."""
        parent = above.copy()
        crossed = np.zeros(above.size, np.bool_)
        makers, takers = (told.of(self.is_span) for told in (self.space.produces, self.space.consumes))
        if not (makers.rows.size and takers.rows.size):
            return parent, crossed
        order = np.argsort(makers.values, kind="stable")
        numbers = makers.values[order]
        at = np.searchsorted(numbers, takers.values).clip(max=numbers.size - 1)
        maker = makers.rows[order][at]
        start = self.trace.events["start_ns"]
        joined = (
            (numbers[at] == takers.values)
            & (self.thread[maker] != self.thread[takers.rows])
            & (start[maker] <= start[takers.rows])
        )
        taker, maker = takers.rows[joined], maker[joined]
        takes = np.zeros(above.size, np.bool_)
        takes[taker] = True
        # who asked may stand in what was asked for itself: then whoever asked for that
        outer = nearest(above, takes)[maker]
        first = np.full(above.size, -1, np.int64)
        first[taker] = np.where(outer < taker, outer, -1)
        first = nearest(first, takes & (first < 0))[taker]
        asked_by = np.full(above.size, -1, np.int64)
        asked_by[taker] = maker
        maker = asked_by[first]
        shown = nearest(above, ~np.isin(self.trace.events["kind"], _HIDDEN))[maker]
        around = nearest(above, takes)[maker]
        parent[taker] = np.where(shown > around, shown, -1)
        root[taker] = root[maker]
        crossed[taker] = True
        return parent, crossed

    def _below_calls(self, parent: Rows, root: Rows, crossed: Mask, call_of: Rows) -> None:
        """Operations of programs hang below the call of the program, wherever they ran."""
        by_run = self._calls_of_runs(call_of)
        self.call_of_run = by_run
        rows = np.flatnonzero(self.executes)
        found = np.where(self.is_device[rows], -1, call_of[rows])
        run = self.run[rows]
        found = np.where(run >= 0, by_run[np.maximum(run, 0)], found)
        around = nearest(parent, ~self.executes)[rows]
        root[rows] = np.where(around >= 0, root[np.maximum(around, 0)], root[rows])
        inside = ~self.is_device[rows] & (parent[rows] >= 0)
        parent[rows[inside]] = around[inside]
        device = np.flatnonzero(self.is_device)
        launch = self._launches(device)
        of_launch = np.where(launch >= 0, call_of[np.maximum(launch, 0)], -1)
        parent[device] = np.where(of_launch >= 0, of_launch, launch)
        known = np.flatnonzero(found >= 0)
        late = self.trace.events["start_ns"][rows[known]] >= self.trace.events["start_ns"][found[known]]
        known = known[late & ((parent[rows[known]] < 0) | ~self.is_device[rows[known]])]
        parent[rows[known]] = found[known]
        crossed[rows[known]] = self.thread[rows[known]] != self.thread[found[known]]
        crossed[device] = False

    def _calls_of_runs(self, call_of: Rows) -> Rows:
        """The call of each run: around any operation of it or the event of the host that has its number, where that is
        a call of this program; a pool's thread may have come to it from another one. The other runs of a program are
        those of its other calls, in the order of both."""
        run, start = self.run, self.trace.events["start_ns"]
        found = np.full(int(run.max(initial=-1)) + 2, -1, np.int64)
        strings, names = self.trace.strings, self.trace.events["name"]
        for rows in (
            np.flatnonzero((run >= 0) & ~self.executes & self.is_span & (call_of >= 0)),
            np.flatnonzero((run >= 0) & self.executes & self.is_span & (call_of >= 0)),
        ):
            rows = rows[::-1]  # so that the first of a run is kept
            found[run[rows]] = call_of[rows]
        program, first = self._programs_of_runs(found.size)
        calls: dict[str, list[int]] = {}
        for row in np.flatnonzero(self.is_call & ~self.repeated).tolist():
            calls.setdefault(program_name(strings[names[row]]), []).append(row)
        for name, runs in program.items():
            made = calls.get(name, [])
            place = {row: at for at, row in enumerate(made)}
            apart = Counter(
                place[int(found[one])] - at for at, one in enumerate(runs) if int(found[one]) in place
            ).most_common(1)
            shift = apart[0][0] if apart else len(made) - len(runs)
            for at, one in enumerate(runs):
                if int(found[one]) in place:
                    continue
                called = made[at + shift] if 0 <= at + shift < len(made) else -1
                found[one] = called if called >= 0 and start[called] <= first[one] else -1
        return found

    def _programs_of_runs(self, count: int) -> tuple[dict[str, list[int]], Rows]:
        """Runs of each program by name, in their order, and when the first operation of each began."""
        first = np.full(count, np.iinfo(np.int64).max)
        rows = np.flatnonzero((self.run >= 0) & self.executes)[::-1]
        first[self.run[rows]] = self.trace.events["start_ns"][rows]
        operation = np.full(count, -1, np.int64)
        operation[self.run[rows]] = self.space.operation[rows]
        found: dict[str, list[int]] = {}
        for one in np.flatnonzero(operation >= 0).tolist():
            number = self.space.operations[int(operation[one])][0]
            name = self.space.programs.get(number, ("", b""))[0].partition("(")[0]
            found.setdefault(name, []).append(one)
        found.pop("", None)
        return found, first

    def _launches(self, device: Rows) -> Rows:
        """The call of the driver that launched each work of a device, -1 where the profile has none."""
        numbers = self.trace.events["correlation"]
        calls = np.flatnonzero(self.is_span & (numbers > 0))
        found = np.full(device.size, -1, np.int64)
        if calls.size:
            calls = calls[np.argsort(numbers[calls], kind="stable")]
            at = np.searchsorted(numbers[calls], numbers[device]).clip(max=calls.size - 1)
            known = (numbers[calls[at]] == numbers[device]) & (numbers[device] > 0)
            found[known] = calls[at][known]
        return found

    # ------------------------------------------------------------------ measurements

    def _book_times(self, own_ns: Rows, end_ns: Rows) -> None:
        rows = np.flatnonzero(own_ns >= 0)
        whole = end_ns[rows] - self.trace.events["start_ns"][rows]
        self._add(MetricKind.TIME, rows, own_ns[rows])
        self._add(MetricKind.CALL_TIME, rows, whole)
        rows = np.flatnonzero(self.waits)
        self._add(MetricKind.WAIT_TIME, rows, end_ns[rows] - self.trace.events["start_ns"][rows])

    def _add(self, metric: MetricKind, rows: Rows, values: Rows, device: int = -1, stream: int = -1) -> None:
        """Time and bytes are shared by the parts of an operation; what else is known of it stands at the largest."""
        for place, total in totals(self.nodes.place[rows], values):
            parts = self.nodes.parts[place] if metric in _SHARED else [(self.nodes.parts[place][0][0], 1.0)]
            divide = dealt if metric == MetricKind.GPU_TIME else shared  # kernels are counted
            for (node, _), part in zip(parts, divide(total, [share for _, share in parts]), strict=True):
                if not part.count:
                    continue
                measured = (part.count, part.total, part.smallest, part.largest, part.squares)
                self.builder.add_total(node, metric, measured, device, stream)

    def _inside(self, rows: Rows, end_ns: Rows, wanted: Mask) -> dict[int, int]:
        """Of each thread the time in the outermost of the wanted spans."""
        from leadline._events import nest

        thread = self.thread[rows]
        start = self.trace.events["start_ns"][rows]
        own = np.asarray(nest(thread.astype(np.int32), start, end_ns[rows], wanted.astype(np.uint8))[2])
        found = dict.fromkeys(np.unique(thread).tolist(), 0)
        for row in found:
            found[row] = int(own[thread == row].sum())
        return found

    def allocators(self) -> Sequence[History]:
        """See `Import.allocators`."""
        return self.space.allocators

    def book_devices(self, node: Rows, process_node: int, devices: Mapping[int, int]) -> int:
        """See `Import.book_devices`."""
        events = self.trace.events
        rows = np.flatnonzero(self.is_device)
        node[rows] = self.nodes.node[rows]
        launch = self._launches(rows)
        waited = events["start_ns"][rows] - events["start_ns"][np.maximum(launch, 0)]
        own_ns = self._own_on_device(rows)
        kind = events["kind"][rows]
        for index, stream in np.unique(np.stack((events["device"][rows], events["stream"][rows])), axis=1).T.tolist():
            here = (events["device"][rows] == index) & (events["stream"][rows] == stream)
            where = (devices[index], stream)
            self._add(MetricKind.GPU_TIME, rows[here], own_ns[here], *where)
            launched = here & (launch >= 0) & (waited >= 0)
            self._add(MetricKind.LAUNCH_LATENCY, rows[launched], waited[launched], *where)
            for moved, metric in ((Kind.COPY, MetricKind.COPY_BYTES), (Kind.SET, MetricKind.SET_BYTES)):
                mine = rows[here & (kind == moved)]
                self._add(metric, mine, events["bytes"][mine], *where)
            self._book_shapes(rows[here & (kind == Kind.KERNEL)], where)
        self._say_losses()
        executes = self.executes & (self.is_span | self.is_device)
        flow = Dataflow(self.space, self.programs, executes, self.run, self.call_of_run)
        self.dataflow = flow.record
        # launches have been looked for, so the column is free for runs
        self.trace = replace(self.trace, events={**events, "correlation": flow.correlation})
        return self.unlaunched

    def _own_on_device(self, rows: Rows) -> Rows:
        """Time of each work less that of work inside: on TPUs a loop is an event around those of its body."""
        from leadline._events import nest

        events = self.trace.events
        lines = np.stack((events["device"][rows].astype(np.int64), events["stream"][rows].astype(np.int64)))
        if not rows.size:
            return np.zeros(0, np.int64)
        _, line = np.unique(lines, axis=1, return_inverse=True)
        columns = (line.reshape(-1).astype(np.int32), events["start_ns"][rows], self.trace.end_ns[rows])
        inner, _, own, _ = nest(*columns, np.ones(rows.size, np.uint8))
        inner = np.asarray(inner)
        whole = inner >= 0
        sticks_out = whole & (self.trace.end_ns[rows] > self.trace.end_ns[rows][np.maximum(inner, 0)])
        # work that overlaps without lying inside is beside the other
        return np.where(sticks_out.any(), events["duration_ns"][rows], np.asarray(own))

    def _book_shapes(self, rows: Rows, where: tuple[int, int]) -> None:
        detail = self.trace.events["detail"][rows]
        for number in np.unique(detail[detail >= 0]).tolist():
            mine = rows[detail == number]
            for metric, value in device_work.launch_shape(self.trace.details[number]):
                self._add(metric, mine, np.full(mine.size, value, np.int64), *where)

    def _say_losses(self) -> None:
        if self.unread:
            self.builder.loss(
                0, LossKind.EVENTS_DROPPED, self.unread, "Compiled programs in the profile that cannot be read."
            )
        for sentence, count in self.frames.losses().items():
            self.builder.loss(0, LossKind.EVENTS_DROPPED, count, sentence)

    def _meta(self, end_ns: int) -> dict[str, Any]:
        meta = super()._meta(end_ns)
        meta["available"]["import"]["programs"] = len(self.space.programs)
        meta["host"] = {"hostname": self.space.host}
        if self.space.tensors:
            meta["processes"][0].setdefault("dataflow", {})["tensors"] = [list(one) for one in self.space.tensors]
        if self.dataflow:
            meta["processes"][0].setdefault("dataflow", {})["programs"] = {**self.dataflow, "naming": "hlo"}
        return meta
