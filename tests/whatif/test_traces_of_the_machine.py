"""The whole way: the machine runs a program, its trace is read, built into a graph and edited; the prediction equals
what the machine does when the program is edited the same way, to the nanosecond."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from kineto_writer import CALLS, to_kineto
from machine import Machine, Op, Program, Times
from programs import programs

from leadline.whatif import Graph, TaskKind, load, simulate

many = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture],
)
COUNTER = 300_000


def framed(program: Program) -> Program:
    """Every rank first runs one kernel on an idle device, so that the trace shows what a launch takes, and ends with an
    operator, so that no edit uncovers Python behind the last event."""
    threads = {}
    for at, ((rank, thread), ops) in enumerate(program.threads.items()):
        number = COUNTER + 3 * at
        first = [Op(number, "launch", 900, 0, 4_000), Op(number + 1, "sync_device", 300)]
        threads[(rank, thread)] = (*first, *ops, Op(number + 2, "work", 10)) if thread == 0 else ops
    return Program(threads)


def traced(program: Program, folder: Path, *, dispatch_ns: int = 0) -> Graph:
    times = Machine(program, dispatch_ns).run()
    if times.ambiguous:
        reject()
    paths = []
    for rank in sorted({rank for rank, _ in program.threads}):
        path = folder / f"rank{rank}.json"
        path.write_text(json.dumps(to_kineto(program, times, rank)))
        paths.append(path)
    return load(paths)


def check(graph: Graph, program: Program, *, dispatch_ns: int = 0) -> None:
    times = Machine(program, dispatch_ns).run()
    if times.ambiguous:
        reject()
    result = simulate(graph)
    for op in (op for _, op in program.ops() if op.kind == "launch"):
        (task,) = graph.select(name=f"^kernel_{op.id}$")
        assert (result.start_ns[task], result.end_ns[task]) == times.device[op.id]
    assert result.makespan_ns == last_event(program, times)


def last_event(program: Program, times: Times) -> int:
    """End of the last thing that a trace shows; Python behind it is not seen."""
    shown = [times.cpu[op.id][1] for _, op in program.ops() if op.kind == "work" or op.kind in CALLS]
    return max([*shown, *(end for _, end in times.device.values())])


@many
@given(program=programs(threads=1), dispatch_ns=st.sampled_from([0, 700]))
def test_replay(program: Program, dispatch_ns: int, tmp_path: Path) -> None:
    program = framed(program)
    graph = traced(program, tmp_path, dispatch_ns=dispatch_ns)
    check(graph, program, dispatch_ns=dispatch_ns)
    assert graph.info.measured_ns == simulate(graph).makespan_ns


@many
@given(program=programs(threads=1), factor=st.sampled_from([0, 2, 5]), data=st.data())
def test_other_kernels(program: Program, factor: int, data: st.DataObject, tmp_path: Path) -> None:
    program = framed(program)
    graph = traced(program, tmp_path)
    chosen = {op.id for _, op in program.ops() if op.kind == "launch" and data.draw(st.booleans())}
    graph.scale([graph.select(name=f"^kernel_{op}$").ids[0] for op in chosen], factor)
    check(graph, program.edit(lambda op: [replace(op, kernel_ns=op.kernel_ns * factor) if op.id in chosen else op]))


@many
@given(program=programs(threads=1), factor=st.sampled_from([2, 4]))
def test_a_slower_cpu(program: Program, factor: int, tmp_path: Path) -> None:
    program = framed(program)
    graph = traced(program, tmp_path)
    graph.scale(graph.select(kind=TaskKind.CPU), factor, gaps=True)
    check(graph, program.edit(lambda op: [replace(op, cpu_ns=op.cpu_ns * factor)]))


@many
@given(program=programs(threads=1, ranks=1), data=st.data())
def test_without_synchronisations(program: Program, data: st.DataObject, tmp_path: Path) -> None:
    program = framed(program)
    graph = traced(program, tmp_path)
    gone = set()
    for kind in ("sync", "sync_device", "sync_event"):
        ops = [op.id for _, op in program.ops() if op.kind == kind]
        tasks = sorted(graph.select(name=f"^{CALLS[kind]}$"), key=lambda task: graph.task(task).start_ns)
        chosen = [at for at in range(len(ops)) if data.draw(st.booleans())]
        graph.remove([tasks[at] for at in chosen])
        gone |= {ops[at] for at in chosen}
    check(graph, program.edit(lambda op: [] if op.id in gone else [op]))


@pytest.mark.parametrize("synchronisation", ["stream", "event"])
def test_a_wait_through_a_stream_without_work(synchronisation: str, tmp_path: Path) -> None:
    """Stream 2 is given nothing: it waits for stream 1, and stream 0 and the CPU wait for what it recorded."""
    wait = Op(8, "sync", 500, stream=2) if synchronisation == "stream" else Op(8, "sync_event", 500, stream=2, event=2)
    program = framed(
        Program(
            {
                (0, 0): (
                    Op(1, "launch", 5_000, 1, 90_000), Op(2, "record", 700, stream=1, event=1),
                    Op(3, "wait", 600, stream=2, event=1), Op(4, "record", 700, stream=2, event=2),
                    Op(5, "sync_device", 400), Op(6, "wait", 600, stream=0, event=2),
                    Op(7, "launch", 5_000, 0, 30_000), wait, Op(9, "sync_device", 400),
                )
            }
        )
    )  # fmt: skip
    graph = traced(program, tmp_path)
    check(graph, program)
    graph.remove([sorted(graph.select(name="^cudaDeviceSynchronize$"), key=lambda task: graph.task(task).start_ns)[1]])
    check(graph, program.edit(lambda op: [] if op.id == 5 else [op]))


@many
@given(program=programs(threads=1, ranks=3), factor=st.sampled_from([0, 2, 3]))
def test_another_network(program: Program, factor: int, tmp_path: Path) -> None:
    program = framed(program)
    graph = traced(program, tmp_path)
    graph.scale(graph.select(kind=TaskKind.COMM), factor)
    check(
        graph,
        program.edit(lambda op: [replace(op, kernel_ns=op.kernel_ns * factor) if op.kind == "collective" else op]),
    )


def turns(backward: list[Op]) -> Program:
    """A loop's thread that hands over to an autograd thread and takes back, twice."""
    main = [
        Op(1, "work", 9_000), Op(2, "launch", 5_000, 0, 40_000), Op(3, "python", 2_000), Op(4, "give", 700, event=1),
        Op(5, "take", 900, event=2), Op(6, "launch", 5_000, 0, 10_000), Op(7, "sync", 1_000),
        Op(8, "work", 3_000), Op(9, "give", 400, event=3), Op(10, "take", 300, event=4), Op(11, "sync", 800),
    ]  # fmt: skip
    other = [
        Op(20, "take", 600, event=1), *backward, Op(40, "give", 500, event=2), Op(41, "take", 350, event=3),
        Op(42, "launch", 4_000, 0, 20_000), Op(43, "work", 2_500), Op(44, "give", 200, event=4),
    ]  # fmt: skip
    return framed(Program({(0, 0): tuple(main), (0, 1): tuple(other)}))


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_threads_that_take_turns(factor: int, tmp_path: Path) -> None:
    backward = [Op(30, "work", 8_000), Op(31, "launch", 6_000, 0, 50_000), Op(32, "python", 1_500), Op(33, "work", 700)]
    program = turns(backward)
    graph = traced(program, tmp_path)
    graph.scale(graph.select(kind=TaskKind.CPU), factor, gaps=True)
    check(graph, program.edit(lambda op: [replace(op, cpu_ns=op.cpu_ns * factor)]))
