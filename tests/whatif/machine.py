"""A machine of threads, streams and collectives that runs small programs: the ground truth for counterfactuals.

It shares nothing with Leadline: threads are coroutines, streams are queues that pull work, and time moves from event to
event. A program can be run as it is or after an edit of the program itself, so what an edit of the graph predicts can
be compared with what the machine really does.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

LATENCY_NS = 5000  # from the start of a launch to the earliest start of its kernel


@dataclass(frozen=True)
class Op:
    """One statement of a thread.

    kind: work (CPU), python (CPU without an event), launch, record, wait, sync (stream), sync_device, sync_event,
    collective, give and take (hand-over to another thread by token).
    """

    id: int
    kind: str
    cpu_ns: int = 0
    stream: int = 0
    kernel_ns: int = 0
    event: int = 0
    group: int = -1


@dataclass(frozen=True)
class Program:
    """Statements of every (rank, thread)."""

    threads: dict[tuple[int, int], tuple[Op, ...]]

    def ops(self) -> list[tuple[tuple[int, int], Op]]:
        return [(key, op) for key, thread in self.threads.items() for op in thread]

    def edit(self, change: Callable[[Op], list[Op]]) -> Program:
        """Every statement replaced by what `change` gives for it."""
        return Program({key: tuple(new for op in thread for new in change(op)) for key, thread in self.threads.items()})


@dataclass
class Times:
    """What happened, by statement id."""

    cpu: dict[int, tuple[int, int]] = field(default_factory=dict)
    device: dict[int, tuple[int, int]] = field(default_factory=dict)
    ambiguous: bool = False  # two threads touched one stream at the very same moment, so the order is undefined

    @property
    def makespan_ns(self) -> int:
        return max(end for _, end in itertools.chain(self.cpu.values(), self.device.values()))


@dataclass
class _Item:
    """Something in a stream's queue."""

    op: Op
    kind: str
    available_ns: int
    awaited: _Item | None = None
    done_ns: int | None = None
    watchers: list[Callable[[], None]] = field(default_factory=list)


class _Stream:
    def __init__(self, machine: Machine, rank: int) -> None:
        self.machine = machine
        self.rank = rank
        self.at_work = False
        self.queue: deque[_Item] = deque()
        self.last: _Item | None = None
        self.busy = False
        self.used = False
        self.ready_ns = 0
        self.touched_at: dict[int, int] = {}

    def touch(self, thread: int) -> None:
        if self.touched_at.setdefault(self.machine.now, thread) != thread:
            self.machine.times.ambiguous = True

    def put(self, item: _Item) -> None:
        self.queue.append(item)
        self.last = item
        self.pull()

    def pull(self) -> None:
        if self.busy or not self.queue:
            return
        self.busy = True
        item = self.queue.popleft()
        if item.kind == "kernel" or item.kind == "collective":
            pause = self.machine.dispatch_ns if self.used else 0
            start = max(self.ready_ns + pause, item.available_ns)
            self.machine.at(start, lambda: self.run(item))
        elif item.awaited is not None and item.awaited.done_ns is None:
            item.awaited.watchers.append(lambda: self.finish_mark(item))
        else:
            self.finish_mark(item)

    def finish_mark(self, item: _Item) -> None:
        done = max(self.ready_ns, item.available_ns, item.awaited.done_ns if item.awaited else 0)  # type: ignore[type-var]
        self.machine.at(done, lambda: self.finish(item))

    def run(self, item: _Item) -> None:
        start = self.machine.now
        if item.kind == "kernel":
            beside = any(other.at_work for (rank, _), other in self.machine.streams.items() if rank == self.rank)
            length = int(item.op.kernel_ns * (self.machine.slowdown if beside else 1.0))
            self.at_work = True
            self.machine.times.device[item.op.id] = (start, start + length)
            self.machine.at(start + length, lambda: self.finish(item))
            return
        members = self.machine.arrived.setdefault(item.op.group, [])
        members.append((self, item, start))
        if len(members) == self.machine.group_size[item.op.group]:
            for stream, member, begun in members:
                end = start + member.op.kernel_ns
                self.machine.times.device[member.op.id] = (begun, end)
                self.machine.at(end, lambda stream=stream, member=member: stream.finish(member))

    def finish(self, item: _Item) -> None:
        item.done_ns = self.machine.now
        self.ready_ns = self.machine.now
        self.used = True
        self.busy = self.at_work = False
        if item.kind in ("kernel", "collective"):
            self.machine.made_room(self.rank)
        for watcher in item.watchers:
            watcher()
        self.pull()


class Machine:
    """Runs one program; `run()` may be called once. `dispatch_ns`: a stream's pause between two pieces of work. `depth`:
    how much work of a rank may wait or run on the device before a launch waits itself, 0 for any. `slowdown`: how much
    longer a kernel takes that begins while another stream of its rank is at work."""

    def __init__(self, program: Program, dispatch_ns: int = 0, *, depth: int = 0, slowdown: float = 1.0) -> None:
        self.program = program
        self.dispatch_ns = dispatch_ns
        self.depth = depth
        self.slowdown = slowdown
        self.outstanding: dict[int, int] = {}
        self.room: dict[int, Callable[[], None]] = {}
        self.now = 0
        self.times = Times()
        self.heap: list[tuple[int, int, Callable[[], None]]] = []
        self.counter = itertools.count()
        self.streams: dict[tuple[int, int], _Stream] = {}
        self.events: dict[tuple[int, int], _Item] = {}
        self.tokens: dict[tuple[int, int], int] = {}
        self.takers: dict[tuple[int, int], Callable[[], None]] = {}
        self.arrived: dict[int, list[tuple[_Stream, _Item, int]]] = {}
        self.group_size: dict[int, int] = {}
        for _, op in program.ops():
            if op.kind == "collective":
                self.group_size[op.group] = self.group_size.get(op.group, 0) + 1

    def at(self, time_ns: int, action: Callable[[], None]) -> None:
        heapq.heappush(self.heap, (time_ns, next(self.counter), action))

    def run(self) -> Times:
        for (rank, thread), ops in self.program.threads.items():
            coroutine = self.thread(rank, thread, ops)
            self.at(0, lambda coroutine=coroutine: self.advance(coroutine))
        while self.heap:
            self.now, _, action = heapq.heappop(self.heap)
            action()
        expected = sum(1 for _, op in self.program.ops())
        assert len(self.times.cpu) == expected, "the program deadlocks"
        return self.times

    def advance(self, coroutine: Generator[Callable[[Callable[[], None]], None], None, None]) -> None:
        for arm in coroutine:
            arm(lambda: self.advance(coroutine))
            return

    def sleep(self, duration_ns: int) -> Callable[[Callable[[], None]], None]:
        return lambda wake: self.at(self.now + duration_ns, wake)

    def stream(self, rank: int, number: int) -> _Stream:
        return self.streams.setdefault((rank, number), _Stream(self, rank))

    def made_room(self, rank: int) -> None:
        self.outstanding[rank] = self.outstanding.get(rank, 0) - 1
        if rank in self.room:
            self.at(self.now, self.room.pop(rank))

    def thread(
        self, rank: int, thread: int, ops: tuple[Op, ...]
    ) -> Generator[Callable[[Callable[[], None]], None], None, None]:
        for op in ops:
            begin = self.now
            if op.kind in ("launch", "collective"):
                while self.depth and self.outstanding.get(rank, 0) >= self.depth:
                    yield lambda wake: self.room.__setitem__(rank, wake)
                self.outstanding[rank] = self.outstanding.get(rank, 0) + 1
                stream = self.stream(rank, op.stream)
                stream.touch(thread)
                stream.put(_Item(op, "kernel" if op.kind == "launch" else "collective", self.now + LATENCY_NS))
            elif op.kind == "record":
                item = _Item(op, "record", self.now)
                self.events[(rank, op.event)] = item
                self.stream(rank, op.stream).touch(thread)
                self.stream(rank, op.stream).put(item)
            elif op.kind == "wait":
                self.stream(rank, op.stream).touch(thread)
                self.stream(rank, op.stream).put(_Item(op, "wait", self.now, self.events[(rank, op.event)]))
            elif op.kind in ("sync", "sync_device", "sync_event"):
                yield from self.wait_for(rank, thread, op)
            elif op.kind == "take":
                key = (rank, op.event)
                while self.tokens.get(key, 0) == 0:
                    yield lambda wake, key=key: self.takers.__setitem__(key, wake)
                self.tokens[key] -= 1
            yield self.sleep(op.cpu_ns)
            if op.kind == "give":
                key = (rank, op.event)
                self.tokens[key] = self.tokens.get(key, 0) + 1
                if key in self.takers:
                    self.at(self.now, self.takers.pop(key))
            self.times.cpu[op.id] = (begin, self.now)

    def wait_for(self, rank: int, thread: int, op: Op) -> Generator[Callable[[Callable[[], None]], None], None, None]:
        if op.kind == "sync_event":
            items = [self.events[(rank, op.event)]]
        else:
            chosen = [
                stream
                for (owner, number), stream in self.streams.items()
                if owner == rank and (op.kind == "sync_device" or number == op.stream)
            ]
            items = [stream.last for stream in chosen if stream.last is not None]
            for stream in chosen:
                stream.touch(thread)
        for item in items:
            while item.done_ns is None:
                yield lambda wake, item=item: item.watchers.append(lambda: self.at(self.now, wake))
