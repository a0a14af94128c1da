"""Random programs for the machine, and the dependency graph of a program."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from machine import LATENCY_NS, Op, Program

from leadline.whatif import EdgeType, Graph, GraphBuilder, LaneKind, TaskKind

COLLECTIVE_STREAM = 9
KINDS = ("work", "python", "launch", "launch", "launch", "record", "wait", "sync", "sync_device", "sync_event")


@dataclass(frozen=True)
class Drawn:
    """A graph and where each statement went: its CPU task, its device task, and the lanes of streams and threads."""

    graph: Graph
    cpu: dict[int, int]
    device: dict[int, int]
    streams: dict[tuple[int, int], int]
    threads: dict[tuple[int, int], int]


def to_graph(program: Program, streams: int) -> Drawn:
    """The graph that describes the program exactly."""
    build = GraphBuilder()
    ranks = sorted({rank for rank, _ in program.threads})
    threads = {key: build.lane(f"thread {key[1]}", LaneKind.THREAD, rank=key[0], device=-1) for key in program.threads}
    numbers = [*range(streams), COLLECTIVE_STREAM]
    lanes = {
        (rank, number): build.lane(f"stream {number}", LaneKind.STREAM, rank=rank, device=0)
        for rank in ranks
        for number in numbers
    }
    cpu: dict[int, int] = {}
    device: dict[int, int] = {}
    given: dict[tuple[int, int], int] = {}
    taken: list[tuple[tuple[int, int], int]] = []
    for (rank, thread), ops in program.threads.items():
        marks: dict[int, int] = {}
        for op in ops:
            task = cpu[op.id] = build.task(op.kind, TaskKind.CPU, threads[(rank, thread)], op.cpu_ns)
            lane = lanes[(rank, op.stream)]
            if op.kind == "launch":
                device[op.id] = build.task(
                    "kernel", TaskKind.GPU, lane, op.kernel_ns, launch=task, latency_ns=LATENCY_NS
                )
            elif op.kind == "collective":
                device[op.id] = build.task(
                    "all_reduce", TaskKind.COMM, lane, op.kernel_ns, launch=task, latency_ns=LATENCY_NS, group=op.group
                )
            elif op.kind == "record":
                marks[op.event] = device[op.id] = build.task("record", TaskKind.GPU, lane, 0, launch=task)
            elif op.kind == "wait":
                device[op.id] = build.task("wait", TaskKind.GPU, lane, 0, launch=task)
                build.edge(marks[op.event], device[op.id], EdgeType.STREAM_WAIT)
            elif op.kind == "sync":
                build.wait(task, lane)
            elif op.kind == "sync_device":
                for number in numbers:
                    build.wait(task, lanes[(rank, number)])
            elif op.kind == "sync_event":
                build.edge(marks[op.event], task, EdgeType.SYNC)
            elif op.kind == "give":
                given[(rank, op.event)] = task
            elif op.kind == "take":
                taken.append(((rank, op.event), task))
    for key, task in taken:
        build.edge(given[key], task, EdgeType.THREAD)
    return Drawn(build.graph(), cpu, device, lanes, threads)


@st.composite
def programs(draw: st.DrawFn, *, ranks: int = 2, threads: int = 2, streams: int = 3) -> Program:
    """Programs that cannot deadlock: events are recorded before they are waited for, collectives come in one order."""
    counter = iter(range(100_000))
    short, long = st.integers(1, 40_000), st.integers(1, 120_000)
    rank_count = draw(st.integers(1, ranks))
    collectives = [draw(long) for _ in range(draw(st.integers(0, 3)))] if rank_count > 1 else []
    result: dict[tuple[int, int], tuple[Op, ...]] = {}
    for rank in range(rank_count):
        thread_count = draw(st.integers(1, threads))
        hand_over = thread_count == 2 and draw(st.booleans())
        for thread in range(thread_count):
            ops: list[Op] = []
            recorded: list[tuple[int, int]] = []
            for _ in range(draw(st.integers(1, 14))):
                kind = draw(st.sampled_from(KINDS))
                if kind in ("wait", "sync_event") and not recorded:
                    kind = "launch"
                number = next(counter)
                stream = draw(st.integers(0, streams - 1))
                event = draw(st.sampled_from(recorded))[0] if kind in ("wait", "sync_event") else number
                if kind == "record":
                    recorded.append((event, stream))
                ops.append(Op(number, kind, draw(short), stream, draw(long) if kind == "launch" else 0, event))
            if thread == 0:
                ops = _spread(draw, ops, [
                    Op(next(counter), "collective", draw(short), COLLECTIVE_STREAM, transfer, group=group)
                    for group, transfer in enumerate(collectives)
                ])  # fmt: skip
            if hand_over:
                first, second = ("give", "take") if thread == 0 else ("take", "give")
                pair = [Op(next(counter), first, draw(short), event=0),
                        Op(next(counter), second, draw(short), event=1)]  # fmt: skip
                ops = _spread(draw, ops, pair)
            result[(rank, thread)] = tuple(ops)
    return Program(result)


def _spread(draw: st.DrawFn, ops: list[Op], extra: list[Op]) -> list[Op]:
    """Put the extra statements, in their order, at random places."""
    places = sorted(draw(st.integers(0, len(ops))) for _ in extra)
    result = list(ops)
    for shift, (place, op) in enumerate(zip(places, extra, strict=True)):
        result.insert(place + shift, op)
    return result
