"""The dependency graph of a trace window and the primitives that edit it (Daydream, sections 4.2 and 4.4).

A task is a row of struct-of-arrays columns; its id is the row and never changes. Tasks of one lane run one after
another, so sequence needs no edges; everything else is an edge (src, dst, type, latency). Edits write only the columns
they touch, and `copy()` shares all others: a scenario is `g = base.copy()` followed by edits of `g`.

    graph = whatif.load("trace.json.gz")
    faster = graph.copy()
    faster.scale(faster.select(kind=TaskKind.GPU, name="gemm|conv"), 1 / 3)
    print(whatif.simulate(faster).makespan_ns / whatif.simulate(graph).makespan_ns)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
from numpy.typing import NDArray

from leadline.whatif.kinds import (
    BoolArray,
    Discipline,
    EdgeType,
    GraphError,
    IntArray,
    Lane,
    LaneKind,
    Phase,
    TaskKind,
)
from leadline.whatif.reading import GraphReading, Selectable
from leadline.whatif.rewire import restitched
from leadline.whatif.tables import EDGE_COLUMNS, TASK_COLUMNS, WAIT_COLUMNS, DeviceInfo, GraphInfo

__all__ = ["EDGE_COLUMNS", "TASK_COLUMNS", "WAIT_COLUMNS", "DeviceInfo", "Graph", "GraphInfo", "Selectable"]


class Graph(GraphReading):
    """A graph and the primitives that edit it: durations, gaps and latencies; remove, insert, move; edges and lanes."""

    # ------------------------------------------------------------------ durations

    def scale(self, selection: Selectable, factor: float | NDArray[np.float64], *, gaps: bool = False) -> None:
        """Multiply durations (and with `gaps` the gaps) by one factor or one per selected task, in id order.

        A permitted overlap (negative gap of a stream) shrinks with its task in any case.
        """
        ids = self.ids_of(selection).ids
        factors = np.broadcast_to(np.asarray(factor, dtype=np.float64), ids.shape)
        if not np.all(np.isfinite(factors)) or bool((factors < 0).any()):
            raise GraphError("durations can only be scaled by finite factors of at least 0")
        duration, gap = self.tasks.write("duration_ns"), self.tasks.write("gap_ns")
        with np.errstate(invalid="ignore"):  # times of a damaged file leave 64 bits; what follows refuses them
            duration[ids] = np.rint(duration[ids] * factors).astype(np.int64)
        scaled = np.rint(gap[ids] * factors).astype(np.int64)
        gap[ids] = np.where((gap[ids] < 0) | gaps, scaled, gap[ids])

    def set_duration(self, selection: Selectable, duration_ns: int | IntArray) -> None:
        """Set durations, one for all or one per selected task in id order."""
        if bool((np.asarray(duration_ns) < 0).any()):
            raise GraphError("a duration cannot be negative")
        ids = self.ids_of(selection).ids
        self.tasks.write("duration_ns")[ids] = duration_ns
        gap = self.tasks.write("gap_ns")
        gap[ids] = np.maximum(gap[ids], -self.tasks["duration_ns"][ids])

    def set_gap(self, selection: Selectable, gap_ns: int | IntArray) -> None:
        """Set the lane time between the end of a task and the next start on its lane."""
        if bool((np.asarray(gap_ns) < 0).any()):
            raise GraphError("a gap cannot be negative")
        self.tasks.write("gap_ns")[self.ids_of(selection).ids] = gap_ns

    def set_priority(self, selection: Selectable, priority: float | NDArray[np.float64]) -> None:
        """Set the rank among waiting tasks of a READY lane; smaller goes first."""
        self.tasks.write("priority")[self.ids_of(selection).ids] = priority

    def scale_latency(self, edge_type: EdgeType, factor: float, selection: Selectable | None = None) -> None:
        """Multiply the latencies of one type of edges, of all or of those that start in the selection."""
        chosen = self.edges["type"] == edge_type
        if selection is not None:
            chosen = chosen & self.ids_of(selection).mask(len(self))[self.edges["src"]]
        latency = self.edges.write("latency_ns")
        latency[chosen] = np.rint(latency[chosen] * factor).astype(np.int64)

    # ------------------------------------------------------------------ structure

    def remove(self, selection: Selectable, *, keep_gap: bool = False) -> None:
        """Take tasks out. What depended on one now depends on what it depended on, and on its lane's task before it.

        The gap goes with its task (the Python and framework time of the removed call); `keep_gap` gives it to the
        lane's task before, for a removal that leaves the surrounding code in place.
        """
        chosen = self.ids_of(selection)
        gone = chosen.mask(len(self)) & self.tasks["alive"]
        if not gone.any():
            return
        before = self._nearest_alive(gone)
        if keep_gap:
            gap = self.tasks.write("gap_ns")
            kept = np.flatnonzero(gone & (before >= 0))
            np.add.at(gap, before[kept], np.maximum(gap[kept], 0))
        # what no longer exists takes no room in a queue and waits for none
        room = self.edges["type"] == EdgeType.ROOM
        self.edges.keep(~(room & (gone[self.edges["src"]] | gone[self.edges["dst"]])))
        self.edges = restitched(self.edges, gone, before, self._nearest_alive(gone, following=True))
        self.waits.keep(~gone[self.waits["task"]])
        self.tasks.write("alive")[gone] = False

    def insert(
        self,
        name: str,
        kind: TaskKind,
        lane: int,
        duration_ns: int,
        *,
        after: Selectable = (),
        before: Selectable = (),
        launch: int | None = None,
        latency_ns: int = 0,
        gap_ns: int = 0,
        layer: str = "",
        phase: Phase = Phase.OTHER,
        step: int = 0,
        bytes: int = 0,
        priority: float = 0.0,
        group: int = -1,
    ) -> int:
        """Add a task; returns its id.

        It runs after the end of every task in `after` and before the start of every task in `before`. On its lane it
        stands behind the last task of `after` that is on the lane, else in front of the first of `before`, else where
        `launch` stands in time, else at the end. On a stream it is launched by `launch` (not before the start of that
        CPU task + `latency_ns`), or together with the task before it on the stream when no launch is given.
        """
        if duration_ns < 0 or gap_ns < 0 or latency_ns < 0:
            raise GraphError(f"{name!r} cannot be inserted with a negative duration, gap or latency")
        if not 0 <= lane < len(self.lanes):
            raise GraphError(f"{name!r} cannot be inserted on lane {lane}: the graph has {len(self.lanes)} lanes")
        ahead, behind = self._few(after), self._few(before)
        order = self._place(lane, ahead, behind, launch)
        # in the order of TASK_COLUMNS
        task = self.tasks.append_row(
            int(kind), lane, int(duration_ns), int(gap_ns), 1, 0, -1, 0, order, self.name_id(name), 0,
            -1 if launch is None else launch, self.layer_id(layer), int(phase), step, int(bytes), priority, group, -1,
            False, True,
        )  # fmt: skip
        edge = EdgeType.COMMUNICATION if kind == TaskKind.COMM else EdgeType.DEPENDENCY
        for source in ahead:
            self.connect(source, task, edge)
        for target in behind:
            self.connect(task, target, edge)
        if launch is not None:
            self.connect(launch, task, EdgeType.LAUNCH, latency_ns)
        return task

    def insert_on_channel(
        self,
        name: str,
        lane: int,
        duration_ns: IntArray,
        *,
        after: IntArray,
        before: IntArray,
        layer: IntArray,
        phase: Phase,
        step: IntArray,
        bytes: IntArray,
        priority: NDArray[np.float64],
    ) -> IntArray:
        """Add many communication tasks to a lane that takes what is ready; parallel arrays, -1 in `after` and `before`
        for none, `layer` as rows of `layers`. Returns their ids."""
        if self.lanes[lane].discipline != Discipline.READY:
            raise GraphError(f"tasks of lane {lane} have an order; insert them one by one")
        count = int(duration_ns.size)
        order = float(self.tasks["order"].max(initial=0.0)) + 1.0 + np.arange(count)
        first = self.tasks.append(
            kind=np.full(count, int(TaskKind.COMM)), lane=lane, duration_ns=duration_ns, gap_ns=0, gap_level=1,
            earliest_ns=0, start_ns=-1, measured_ns=0, order=order,
            name=self.name_id(name), operator=0, parent=-1, layer=layer, phase=int(phase), step=step, bytes=bytes,
            priority=priority, group=-1, detail=-1, beside=False, alive=True,
        )  # fmt: skip
        ids = np.arange(first, first + count, dtype=np.int64)
        for sources, targets in ((after, ids), (ids, before)):
            known = (sources >= 0) & (targets >= 0)
            src, dst = sources[known], targets[known]
            if src.size:
                self.edges.append(
                    src=src, dst=dst, type=np.full(src.size, int(EdgeType.COMMUNICATION)), latency_ns=0
                )  # fmt: skip
        return ids

    def move(self, selection: Selectable, lane: int) -> None:
        """Put tasks on another lane, among its tasks by their time of origin."""
        if not 0 <= lane < len(self.lanes):
            raise GraphError(f"tasks cannot be moved to lane {lane}: the graph has {len(self.lanes)} lanes")
        self.tasks.write("lane")[self.ids_of(selection).ids] = lane

    def connect(self, source: int, target: int, edge_type: EdgeType = EdgeType.DEPENDENCY, latency_ns: int = 0) -> None:
        """Add one edge."""
        if source == target:
            raise GraphError(f"task {source} cannot depend on itself")
        self.edges.append_row(source, target, int(edge_type), int(latency_ns))

    def disconnect(self, edge_type: EdgeType, selection: Selectable | None = None) -> None:
        """Take out all edges of a type, or those that end in the selection; for SYNC the waits of the tasks as well."""
        into = None if selection is None else self.ids_of(selection).mask(len(self))
        chosen = self.edges["type"] == edge_type
        self.edges.keep(~(chosen if into is None else chosen & into[self.edges["dst"]]))
        if edge_type == EdgeType.SYNC:
            keep = np.zeros(len(self.waits), dtype=np.bool_) if into is None else ~into[self.waits["task"]]
            self.waits.keep(keep)

    def await_lane(self, task: int, lane: int) -> None:
        """Make a CPU task a synchronisation with everything that was issued to a stream when the task is reached."""
        self.waits.append(task=task, lane=lane)

    def add_lane(
        self, name: str, kind: LaneKind, *, rank: int = 0, device: int = -1, discipline: Discipline | None = None
    ) -> int:
        """Add a thread, stream or channel; threads take tasks in order, streams as issued, channels as ready."""
        default = {
            LaneKind.THREAD: Discipline.ORDER,
            LaneKind.STREAM: Discipline.ISSUE,
            LaneKind.CHANNEL: Discipline.READY,
        }
        self.lanes.append(Lane(name, kind, default[kind] if discipline is None else discipline, rank, device))
        return len(self.lanes) - 1

    def new_group(self) -> int:
        """A fresh collective group: its tasks all end at the last one's start plus their own duration."""
        return int(self.tasks["group"].max(initial=-1)) + 1

    def name_id(self, name: str) -> int:
        """Row of `name` in `names`, added when new."""
        if self._name_ids is None:
            self._name_ids = {text: row for row, text in enumerate(self.names)}
        found = self._name_ids.get(name)
        if found is None:
            found = self._name_ids[name] = len(self.names)
            self.names.append(name)
        return found

    def layer_id(self, layer: str) -> int:
        """Row of `layer` in `layers`, added when new."""
        if self._layer_ids is None:
            self._layer_ids = {text: row for row, text in reversed(list(enumerate(self.layers)))}
        found = self._layer_ids.get(layer)
        if found is None:
            found = self._layer_ids[layer] = len(self.layers)
            self.layers.append(layer)
        return found

    # ------------------------------------------------------------------ inside

    def _few(self, selection: Selectable) -> list[int]:
        """Ids of a selection, sorted; quick for one task or a handful."""
        if isinstance(selection, int):
            return [selection]
        if isinstance(selection, list | tuple):
            return sorted(set(selection))
        found: list[int] = self.ids_of(selection).ids.tolist()
        return found

    def _lane_keys(self, lane: int) -> list[float]:
        """Order keys of the living tasks of a lane, sorted; kept up to date by `insert`."""
        stamp = (*(self.tasks.writes(name) for name in ("lane", "order", "alive")), len(self.tasks))
        if stamp != self._keys_stamp:
            self._keys, self._keys_stamp = {}, stamp
        keys = self._keys.get(lane)
        if keys is None:
            ids = np.flatnonzero((self.tasks["lane"] == lane) & self.tasks["alive"])
            keys = self._keys[lane] = np.sort(self.tasks["order"][ids]).tolist()
        return keys

    def _nearest_alive(self, gone: BoolArray, *, following: bool = False) -> IntArray:
        """For every task in `gone`, the last task before it (the first behind it) on its lane that stays; -1 for none.

        Lanes that take whatever is ready have no order, so nothing is behind a task there.
        """
        living = np.flatnonzero(self.tasks["alive"])
        lane, order = self.tasks["lane"][living], self.tasks["order"][living]
        ids = living[np.lexsort((order, lane))]
        if following:
            ordered = np.array([item.discipline != Discipline.READY for item in self.lanes], dtype=np.bool_)
            ids = ids[ordered[self.tasks["lane"][ids]]][::-1]
        stays = ~gone[ids]
        rows = np.maximum.accumulate(np.where(stays, np.arange(ids.size), -1))
        previous = np.where(rows >= 0, ids[rows], -1)
        same = (rows >= 0) & (self.tasks["lane"][previous] == self.tasks["lane"][ids])
        result = np.full(len(self), -1, dtype=np.int64)
        result[ids[~stays]] = np.where(same, previous, -1)[~stays]
        return result

    def _place(self, lane: int, ahead: list[int], behind: list[int], launch: int | None) -> float:
        """Order key for a new task on `lane`; it is entered into the lane's keys."""
        keys = self._lane_keys(lane)
        tasks = self.tasks
        if not keys:
            at, key = 0, float(tasks["order"].max(initial=0.0)) + 1.0
        elif self.lanes[lane].discipline == Discipline.READY:
            at, key = len(keys), keys[-1] + 1.0  # such a lane takes what is ready, whatever the key
        else:
            anchors = [tasks.value("order", task) for task in ahead if tasks.value("lane", task) == lane]
            followers = [tasks.value("order", task) for task in behind if tasks.value("lane", task) == lane]
            if anchors:
                at = bisect_right(keys, max(anchors))
            elif followers:
                at = bisect_left(keys, min(followers))
            elif launch is not None:
                at = bisect_right(keys, self._last_launched(launch, lane))
            else:
                at = len(keys)
            key = _between(keys, at)
        keys.insert(at, key)
        *writes, rows = self._keys_stamp
        self._keys_stamp = (*writes, rows + 1)
        return key

    def _last_launched(self, launch: int, lane: int) -> float:
        """Order key behind which work of this launch goes on a stream: that of its last work there, else its own."""
        mine = self.launched_by(launch).ids
        mine = mine[self.tasks["lane"][mine] == lane]
        return float(self.tasks["order"][mine].max(initial=self.tasks["order"][launch]))


def _between(keys: list[float], at: int) -> float:
    if at >= len(keys):
        return keys[-1] + 1.0
    low = keys[at - 1] if at > 0 else keys[0] - 1.0
    middle = (low + keys[at]) / 2
    if not low < middle < keys[at]:
        raise GraphError("too many tasks inserted at one place; insert them with increasing `after` instead")
    return middle
