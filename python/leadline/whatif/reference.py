"""The simulator in plain Python: the definition that the compiled one must equal, and the one for custom schedules.

Rules (Daydream's Algorithm 1 with the corrections that real traces need):
- Work happens in time order; at equal times in task order, and lanes decide after all tasks of that instant.
- A task is ready when its lane's turn has come (end + gap of the task before), all edges are satisfied (end or, for
  LAUNCH and START, start of the source, + latency) and `earliest_ns` has passed. It starts at that moment.
- Streams are queues: a task enters its stream's queue when its launch starts.
- A synchronisation looks, when it starts, at the last task issued to each stream it waits for; it ends when those have
  ended (and everything before them on their streams), plus its own duration.
- Tasks of a collective group each start on their own; all end when the last has started, plus their own durations.
- READY lanes pick among ready tasks whenever they are free: smallest priority, then earliest ready, then task order.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

import numpy as np

from leadline._dataclass import dataclass
from leadline.whatif.kinds import Discipline, EdgeType, IntArray
from leadline.whatif.program import Int32, Int64, Program

Choose = Callable[[int, int, Sequence[int]], int | None]
"""(lane, time_ns, ready task ids) -> the task id to run now, or None to wait until something else happens."""

UNSET = -1
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Run:
    """What a simulator returns, by program row. `cause`: the task that decided the start, -1 for none; `end_cause`:
    the task that decided the end where that is another; `from_start`: whether `cause` acted by its start;
    `finished`: how many tasks ran."""

    start_ns: Int64
    end_ns: Int64
    slack_ns: Int64
    cause: Int32
    end_cause: Int32
    from_start: np.ndarray
    finished: int


CompiledRun = Callable[[Program, bool], Run]


def run(program: Program, *, by_priority: bool = True, choose: Choose | None = None) -> Run:
    """Simulate; tasks that never became ready keep start -1 (a cycle, or a schedule that waits for ever)."""
    return _Machine(program, by_priority, choose).run()


class _Machine:
    def __init__(self, program: Program, by_priority: bool, choose: Choose | None) -> None:
        self.p = program
        self.by_priority = by_priority
        self.choose = choose
        count, lanes = program.ids.size, program.discipline.size
        self.lane = program.lane.tolist()
        self.duration = program.duration_ns.tolist()
        self.gap = program.gap_ns.tolist()
        self.group = program.group.tolist()
        self.discipline = program.discipline.tolist()
        self.ready = program.earliest_ns.tolist()
        self.pending = program.pending.tolist()
        self.launches = program.launches.tolist()
        self.next = program.next_on_lane.tolist()
        self.offset = program.edge_offset.tolist()
        self.edges = list(
            zip(program.edge_dst.tolist(), program.edge_type.tolist(), program.edge_latency_ns.tolist(), strict=True)
        )
        self.start = [UNSET] * count
        self.end = [UNSET] * count
        self.drained = [UNSET] * count  # end of the task and of all before it on its stream
        self.before = [UNSET] * count  # task before on the stream, as issued
        self.cause = [-1] * count
        self.end_cause = [-1] * count
        self.from_start = [False] * count
        self.wait_left = [0] * count
        self.wait_until = [0] * count
        self.watchers: dict[int, list[int]] = {}
        self.awaited: dict[int, list[int]] = {}
        self.members: dict[int, list[int]] = {}
        self.tail = [-1] * lanes
        self.free_at = [0] * lanes
        self.running = [False] * lanes
        self.last = [-1] * lanes
        self.candidates: list[list[tuple[float, int, int]]] = [[] for _ in range(lanes)]
        self.heap: list[tuple[int, int]] = []  # (time, task), or (time, count + lane) for a lane's decision
        self.log: list[tuple[int, bool]] = []  # (task, is_end) in order of happening
        self.now = 0

    def run(self) -> Run:
        count = self.p.ids.size
        for task in range(count):
            if self.pending[task] == 0:
                heapq.heappush(self.heap, (self.ready[task], task))
        for task in self.p.initial.tolist():
            if self.discipline[self.lane[task]] == Discipline.ISSUE:
                self.issue(task)
            else:
                self.release(task, self.ready[task], -1, False)
        while self.heap:
            time_ns, item = heapq.heappop(self.heap)
            self.now = max(self.now, time_ns)  # an edge of negative latency never leads into the past
            if item >= count:
                self.decide(item - count)
            elif self.discipline[self.lane[item]] == Discipline.READY:
                self.offer(item)
            else:
                self.begin(item)
        return Run(
            np.array(self.start, dtype=np.int64),
            np.array(self.end, dtype=np.int64),
            self.slack(),
            np.array(self.cause, dtype=np.int32),
            np.array(self.end_cause, dtype=np.int32),
            np.array(self.from_start, dtype=np.bool_),
            sum(1 for end in self.end if end != UNSET),
        )

    def release(self, task: int, time_ns: int, cause: int, from_start: bool) -> None:
        """One condition of `task` is met at `time_ns`."""
        if time_ns > self.ready[task]:
            self.ready[task] = time_ns
            self.cause[task] = cause
            self.from_start[task] = from_start
        self.pending[task] -= 1
        if self.pending[task] == 0:
            heapq.heappush(self.heap, (self.ready[task], task))

    def issue(self, task: int) -> None:
        """Put a task at the end of its stream's queue."""
        lane = self.lane[task]
        previous, self.tail[lane] = self.tail[lane], task
        self.before[task] = previous
        if previous == -1:
            self.release(task, self.ready[task], -1, False)
            return
        self.next[previous] = task
        if self.end[previous] != UNSET:
            self.release(task, self.end[previous] + self.gap[previous], previous, False)

    def begin(self, task: int) -> None:
        """Start a task now and find out when it ends."""
        now = self.start[task] = self.now
        self.log.append((task, False))
        for target, kind, latency in self.edges[self.offset[task] : self.offset[task + 1]]:
            if kind == EdgeType.LAUNCH or kind == EdgeType.START:
                self.release(target, now + latency, task, True)
                if kind == EdgeType.LAUNCH and self.discipline[self.lane[target]] == Discipline.ISSUE:
                    self.launches[target] -= 1
                    if self.launches[target] == 0:
                        self.issue(target)
        first, last = int(self.p.wait_offset[task]), int(self.p.wait_offset[task + 1])
        if first != last:
            self.synchronise(task, self.p.wait_lane[first:last].tolist())
        elif self.group[task] >= 0:
            met = self.members.setdefault(self.group[task], [])
            met.append(task)
            if len(met) == int(self.p.group_size[self.group[task]]):
                for member in met:
                    self.end_cause[member] = task if member != task else -1
                self.complete([(member, now + self.duration[member]) for member in met])
        else:
            self.complete([(task, now + self.duration[task])])

    def synchronise(self, task: int, lanes: list[int]) -> None:
        tails = [self.tail[lane] for lane in lanes if self.tail[lane] != -1]
        self.awaited[task] = tails
        self.wait_until[task] = self.now
        for tail in tails:
            if self.end[tail] == UNSET:
                self.wait_left[task] += 1
                self.watchers.setdefault(tail, []).append(task)
            elif self.drained[tail] > self.wait_until[task]:
                self.wait_until[task] = self.drained[tail]
                self.end_cause[task] = tail
        if self.wait_left[task] == 0:
            self.complete([(task, self.wait_until[task] + self.duration[task])])

    def complete(self, ended: list[tuple[int, int]]) -> None:
        """The ends of these tasks are known; synchronisations that they end follow."""
        at = 0
        while at < len(ended):
            task, end = ended[at]
            at += 1
            self.end[task] = end
            self.log.append((task, True))
            before = self.before[task]
            self.drained[task] = end if before == -1 else max(end, self.drained[before])
            for target, kind, latency in self.edges[self.offset[task] : self.offset[task + 1]]:
                if kind != EdgeType.LAUNCH and kind != EdgeType.START:
                    self.release(target, end + latency, task, False)
            lane = self.lane[task]
            if self.discipline[lane] == Discipline.READY:
                self.running[lane] = False
                self.free_at[lane] = end + self.gap[task]
                self.last[lane] = task
                if self.candidates[lane]:
                    self.ask(lane)
            elif self.next[task] != -1:
                self.release(self.next[task], end + self.gap[task], task, False)
            for watcher in self.watchers.pop(task, ()):
                if self.drained[task] > self.wait_until[watcher]:
                    self.wait_until[watcher] = self.drained[task]
                    self.end_cause[watcher] = task
                self.wait_left[watcher] -= 1
                if self.wait_left[watcher] == 0:
                    ended.append((watcher, self.wait_until[watcher] + self.duration[watcher]))
        if self.choose is not None:
            for lane, candidates in enumerate(self.candidates):
                if candidates and not self.running[lane]:
                    self.ask(lane)

    def offer(self, task: int) -> None:
        """A task of a READY lane became ready."""
        lane = self.lane[task]
        priority = float(self.p.priority[task]) if self.by_priority else 0.0
        heapq.heappush(self.candidates[lane], (priority, self.now, task))
        if not self.running[lane]:
            self.ask(lane)

    def ask(self, lane: int) -> None:
        time_ns = max(self.now, self.free_at[lane])
        heapq.heappush(self.heap, (time_ns, self.p.ids.size + lane))

    def decide(self, lane: int) -> None:
        """A lane that is free picks its next task; asked more than once at one moment it decides once."""
        candidates = self.candidates[lane]
        if self.running[lane] or not candidates or self.free_at[lane] > self.now:
            return
        if self.choose is None:
            _, ready, task = heapq.heappop(candidates)
        else:
            listed = sorted(candidates)
            chosen = self.choose(lane, self.now, [int(self.p.ids[item[2]]) for item in listed])
            if chosen is None:
                return
            found = next(item for item in listed if int(self.p.ids[item[2]]) == chosen)
            candidates.remove(found)
            heapq.heapify(candidates)
            _, ready, task = found
        if self.last[lane] != -1:
            self.next[self.last[lane]] = task
            if self.free_at[lane] > ready:
                self.cause[task], self.from_start[task] = self.last[lane], False
        self.running[lane] = True
        self.begin(task)

    def slack(self) -> Int64:
        """How much later each task could start without a later end of everything, all order as it happened."""
        horizon = max(self.end, default=0)
        count = len(self.start)
        latest_start, latest_end = [_NEVER] * count, [horizon] * count
        met = self.members
        for task, is_end in reversed(self.log):
            edges = self.edges[self.offset[task] : self.offset[task + 1]]
            if not is_end:
                for target, kind, latency in edges:
                    if (kind == EdgeType.LAUNCH or kind == EdgeType.START) and self.start[target] != UNSET:
                        latest_start[task] = min(latest_start[task], latest_start[target] - latency)
                continue
            bound = latest_end[task]
            for target, kind, latency in edges:
                if kind != EdgeType.LAUNCH and kind != EdgeType.START and self.start[target] != UNSET:
                    bound = min(bound, latest_start[target] - latency)
            following = self.next[task]
            if following != -1 and self.start[following] != UNSET:
                bound = min(bound, latest_start[following] - self.gap[task])
            latest_end[task] = bound
            arrival = bound - self.duration[task]
            for tail in self.awaited.get(task, ()):
                latest_end[tail] = min(latest_end[tail], arrival)
            for member in met.get(self.group[task], ()) if self.group[task] >= 0 else ():
                latest_start[member] = min(latest_start[member], arrival)
            latest_start[task] = min(latest_start[task], arrival)
        started: IntArray = np.array(self.start, dtype=np.int64)
        latest = np.array(latest_start, dtype=np.int64)
        return np.where((started == UNSET) | (latest == _NEVER), 0, latest - started)
