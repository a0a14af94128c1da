"""What an edit of the graph predicts is what the machine does when its program is edited the same way, to the ns."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from machine import LATENCY_NS, Machine, Op, Program, Times
from programs import COLLECTIVE_STREAM, Drawn, programs, to_graph

from leadline.whatif import EdgeType, Graph, TaskKind, simulate

STREAMS = 3
many = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


def run(program: Program) -> Times:
    times = Machine(program).run()
    assume(not times.ambiguous)
    return times


def check(graph: Graph, drawn: Drawn, times: Times) -> None:
    result = simulate(graph)
    for op, (_, end) in times.cpu.items():
        assert result.end_ns[drawn.cpu[op]] == end
    for op, (start, end) in times.device.items():
        assert (result.start_ns[drawn.device[op]], result.end_ns[drawn.device[op]]) == (start, end)
    assert result.makespan_ns == times.makespan_ns


def some(data: st.DataObject, ops: list[Op]) -> list[Op]:
    return [op for op in ops if data.draw(st.booleans())] if ops else []


def of_kind(program: Program, *kinds: str) -> list[Op]:
    return [op for _, op in program.ops() if op.kind in kinds]


@many
@given(programs())
def test_replay(program: Program) -> None:
    drawn = to_graph(program, STREAMS)
    check(drawn.graph, drawn, run(program))


@many
@given(programs(), st.data())
def test_other_durations(program: Program, data: st.DataObject) -> None:
    drawn = to_graph(program, STREAMS)
    kernels, calls = some(data, of_kind(program, "launch")), some(data, [op for _, op in program.ops()])
    kernel_ids, call_ids = {op.id for op in kernels}, {op.id for op in calls}
    factor = data.draw(st.sampled_from([0, 2, 3]))
    added = data.draw(st.integers(0, 200_000))

    def change(op: Op) -> list[Op]:
        if op.id in kernel_ids:
            op = replace(op, kernel_ns=op.kernel_ns * factor)
        return [replace(op, cpu_ns=op.cpu_ns + added) if op.id in call_ids else op]

    graph = drawn.graph.copy()
    graph.scale([drawn.device[op.id] for op in kernels], factor)
    for op in calls:
        graph.set_duration(drawn.cpu[op.id], op.cpu_ns + added)
    check(graph, drawn, run(program.edit(change)))
    check(drawn.graph, drawn, run(program))  # the copy left the original as it was


@many
@given(programs(), st.data())
def test_removed_synchronisations_and_launches(program: Program, data: st.DataObject) -> None:
    drawn = to_graph(program, STREAMS)
    launches = some(data, of_kind(program, "launch"))
    waits = some(data, of_kind(program, "wait"))
    syncs = some(data, of_kind(program, "sync", "sync_device", "sync_event"))
    gone = {op.id for op in (*launches, *waits, *syncs)}
    assume(any(op.id not in gone for _, op in program.ops()))
    graph = drawn.graph.copy()
    graph.disconnect(EdgeType.STREAM_WAIT, [drawn.device[op.id] for op in waits])
    graph.disconnect(EdgeType.SYNC, [drawn.cpu[op.id] for op in syncs])
    graph.remove([drawn.cpu[op] for op in gone] + [drawn.device[op.id] for op in (*launches, *waits)])
    check(graph, drawn, run(program.edit(lambda op: [] if op.id in gone else [op])))


@many
@given(programs(), st.data())
def test_inserted_launches(program: Program, data: st.DataObject) -> None:
    drawn = to_graph(program, STREAMS)
    places = some(data, [op for _, op in program.ops()])[:4]
    new = {
        op.id: Op(200_000 + at, "launch", 7_000 + at, data.draw(st.integers(0, STREAMS - 1)), 31_000 + 1_000 * at)
        for at, op in enumerate(places)
    }
    rank_of = {op.id: key for key, op in program.ops()}
    graph = drawn.graph.copy()
    for place, op in new.items():
        rank, thread = rank_of[place]
        call = graph.insert("new", TaskKind.CPU, drawn.threads[(rank, thread)], op.cpu_ns, after=[drawn.cpu[place]])
        kernel = graph.insert(
            "new", TaskKind.GPU, drawn.streams[(rank, op.stream)], op.kernel_ns, launch=call, latency_ns=LATENCY_NS
        )
        drawn.cpu[op.id], drawn.device[op.id] = call, kernel
    check(graph, drawn, run(program.edit(lambda op: [op, new[op.id]] if op.id in new else [op])))


@many
@given(programs(), st.data())
def test_kernels_on_another_stream(program: Program, data: st.DataObject) -> None:
    drawn = to_graph(program, STREAMS)
    moved = {op.id: data.draw(st.integers(0, STREAMS - 1)) for op in some(data, of_kind(program, "launch"))}
    graph = drawn.graph.copy()
    for key, op in program.ops():
        if op.id in moved:
            graph.move(drawn.device[op.id], drawn.streams[(key[0], moved[op.id])])
    check(graph, drawn, run(program.edit(lambda op: [replace(op, stream=moved.get(op.id, op.stream))])))


@many
@given(programs(ranks=3, threads=1), st.data())
def test_a_faster_network(program: Program, data: st.DataObject) -> None:
    factor = data.draw(st.sampled_from([0, 2, 5]))
    drawn = to_graph(program, STREAMS)
    graph = drawn.graph.copy()
    graph.scale(graph.select(kind=TaskKind.COMM), factor)
    edited = program.edit(
        lambda op: [replace(op, kernel_ns=op.kernel_ns * factor) if op.stream == COLLECTIVE_STREAM else op]
    )
    check(graph, drawn, run(edited))
