"""From small traces to graphs: what each rule of the builder makes of what the trace shows, and of what it lacks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leadline.trace.tables import TraceError
from leadline.whatif import EdgeType, Graph, Phase, TaskKind, load, simulate
from leadline.whatif.selftime import SelfTimes

Events = list[dict[str, Any]]
Make = Callable[..., Graph]


def span(cat: str, name: str, ts: float, dur: float, tid: int = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": tid, "args": args}


def call(name: str, ts: float, dur: float, correlation: int, tid: int = 1) -> dict[str, Any]:
    return span("cuda_runtime", name, ts, dur, tid, correlation=correlation)


def kernel(name: str, ts: float, dur: float, correlation: int, stream: int = 7, cat: str = "kernel") -> dict[str, Any]:
    return span(cat, name, ts, dur, stream, correlation=correlation, stream=stream, device=0)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def make_graph(*ranks: Events, **header: Any) -> Graph:
        paths = []
        for number, events in enumerate(ranks):
            path = tmp_path / f"trace{number}.json"
            distributed = {} if len(ranks) == 1 else {"distributedInfo": {"rank": number, "world_size": len(ranks)}}
            path.write_text(json.dumps({**distributed, **header, "traceEvents": events}))
            paths.append(path)
        return load(paths)

    return make_graph


def one(graph: Graph, name: str) -> int:
    (task,) = graph.select(name=f"^{name}$")
    return task


def warned(graph: Graph, text: str) -> bool:
    return any(text in warning for warning in graph.info.warnings)


def idle_launch(at: float = 0.0) -> Events:
    """One launch on an idle stream, which shows that a launch takes 6 us, and the wait for it."""
    return [
        call("cudaLaunchKernel", at, 4, 1), kernel("first", at + 6, 10, 1),
        call("cudaStreamSynchronize", at + 5, 15, 2),
    ]  # fmt: skip


def test_a_kernel_waits_for_its_launch_or_for_its_stream(make: Make) -> None:
    graph = make([
        *idle_launch(),
        call("cudaLaunchKernel", 100, 4, 3), kernel("a", 106, 50, 3),
        call("cudaLaunchKernel", 110, 4, 4), kernel("b", 157, 20, 4),
    ])  # fmt: skip
    assert simulate(graph).start_ns[one(graph, "b")] == 157_000
    graph.scale(one(graph, "a"), 0.1)
    assert simulate(graph).start_ns[one(graph, "b")] == 116_000  # its launch + 6 us, no longer the stream


def test_a_synchronisation_keeps_only_its_own_time(make: Make) -> None:
    graph = make([*idle_launch(), span("cpu_op", "after", 25, 5)])
    wait = one(graph, "cudaStreamSynchronize")
    assert graph.task(wait).duration_ns == 4_000  # it returned 4 us after the kernel ended
    graph.scale(one(graph, "first"), 3)
    assert simulate(graph).start_ns[one(graph, "after")] == 25_000 + 20_000


def test_one_cuda_graph_launches_many_kernels(make: Make) -> None:
    graph = make([
        *idle_launch(), call("cudaGraphLaunch", 100, 10, 9),
        kernel("g1", 112, 5, 9), kernel("g2", 118, 5, 9), kernel("g3", 200, 5, 9),
        call("cudaDeviceSynchronize", 111, 96, 10),
    ])  # fmt: skip
    launched = graph.launched_by(one(graph, "cudaGraphLaunch"))
    assert {graph.task(task).name for task in launched} == {"g1", "g2", "g3", "(unrecorded graph work)"}
    assert warned(graph, "pass inside CUDA graphs without a recorded kernel")
    assert simulate(graph).start_ns[one(graph, "g3")] == 200_000
    graph.scale(launched, 0.5)
    assert simulate(graph).end_ns[one(graph, "cudaDeviceSynchronize")] < 170_000


def test_a_programmatic_launch_overlaps_on_its_stream(make: Make) -> None:
    graph = make([
        *idle_launch(),
        call("cudaLaunchKernel", 100, 4, 3), kernel("a", 106, 50, 3),
        call("cudaLaunchKernelExC", 110, 4, 4), kernel("b", 150, 20, 4),
    ])  # fmt: skip
    assert graph.task(one(graph, "a")).gap_ns == -6_000
    assert simulate(graph).start_ns[one(graph, "b")] == 150_000


def test_a_copy_from_pageable_memory_blocks_its_call(make: Make) -> None:
    graph = make([
        *idle_launch(),
        call("cudaMemcpyAsync", 100, 30, 3),
        kernel("Memcpy DtoH (Device -> Pageable)", 108, 20, 3, cat="gpu_memcpy"),
        span("cpu_op", "after", 131, 5),
    ])  # fmt: skip
    wait = one(graph, r"cudaMemcpyAsync \(wait\)")
    assert graph.task(wait).duration_ns == 2_000
    graph.scale(graph.select(name="Memcpy", kind=TaskKind.GPU), 4)
    assert simulate(graph).start_ns[one(graph, "after")] == 131_000 + 60_000


def test_a_stream_that_waits_without_a_record_of_it(make: Make) -> None:
    graph = make([
        *idle_launch(),
        call("cudaLaunchKernel", 100, 4, 3), kernel("producer", 106, 200, 3, stream=7),
        call("cudaStreamWaitEvent", 110, 1, 4), call("cudaLaunchKernel", 112, 4, 5),
        kernel("consumer", 308, 10, 5, stream=20), call("cudaDeviceSynchronize", 120, 200, 6),
    ])  # fmt: skip
    assert warned(graph, "1 stream waits carry no record")
    assert (graph.edges["type"] == EdgeType.GUESSED).sum() == 1
    graph.scale(one(graph, "producer"), 2)
    assert simulate(graph).start_ns[one(graph, "consumer")] == 308_000 + 200_000


def test_helper_threads_follow_the_loop(make: Make) -> None:
    work = [span("cpu_op", f"op{number}", 1000 * number, 900) for number in range(10)]
    polls = [call("cudaEventQuery", 1000 * number + 500, 2, 100 + number, tid=2) for number in range(10)]
    graph = make([*idle_launch(20_000), *work, *polls])
    before = simulate(graph).makespan_ns
    graph.scale(graph.select(name="^op", kind=TaskKind.CPU), 0.1, gaps=True)
    # the helper's pauses were waits for the loop, so they do not hold up the end
    assert simulate(graph).makespan_ns < before - 7_000_000


def test_layers_without_modules_are_operators_and_their_backward(make: Make) -> None:
    forward = {"Sequence number": 5, "Fwd thread id": 0}
    backward = {"Sequence number": 5, "Fwd thread id": 1}
    graph = make([
        *idle_launch(),
        span("cpu_op", "aten::linear", 100, 30, **forward), call("cudaLaunchKernel", 110, 4, 3), kernel("f", 116, 5, 3),
        span("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 200, 40, tid=2, **backward),
        span("cpu_op", "AddmmBackward0", 205, 20, tid=2, **backward),
        call("cudaLaunchKernel", 210, 4, 4, tid=2), kernel("b", 216, 5, 4),
        span("cpu_op", "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 250, 20, tid=2),
        call("cudaLaunchKernel", 255, 4, 5, tid=2), kernel("grad", 261, 5, 5),
        span("user_annotation", "Optimizer.step#SGD.step", 300, 30),
        span("cpu_op", "aten::add_", 305, 20), call("cudaLaunchKernel", 310, 4, 6), kernel("update", 316, 5, 6),
    ])  # fmt: skip
    found = {name: graph.task(one(graph, name)) for name in ("f", "b", "grad", "update")}
    assert [found[name].layer for name in ("f", "b", "grad")] == ["aten::linear (1)"] * 3
    assert found["update"].layer == "Optimizer.step#SGD.step"
    phases = [found[name].phase for name in ("f", "b", "grad", "update")]
    assert phases == [Phase.FORWARD, Phase.BACKWARD, Phase.BACKWARD, Phase.OPTIMIZER]


def collective(ts: float, dur: float, correlation: int) -> Events:
    return [
        call("cudaLaunchKernel", ts - 6, 4, correlation),
        kernel("ncclDevKernel_AllReduce", ts, dur, correlation, 20),
    ]


def test_ranks_meet_in_collectives_and_clocks_are_aligned(make: Make) -> None:
    first = [*idle_launch(), *collective(100, 300, 5), *collective(600, 50, 6), *collective(800, 20, 7)]
    second = [*idle_launch(), *collective(370, 30, 5), *collective(610, 40, 6), *collective(790, 30, 7)]
    later = [{**event, "ts": event["ts"] + 5000} for event in second]
    for other in (second, later):
        graph = make(first, other)
        assert graph.info.ranks == (0, 1) and graph.info.facts["collectives"] == 3
        assert warned(graph, "clocks disagree") == (other is later)
        tasks = graph.select(kind=TaskKind.COMM)
        assert sorted(graph.task(task).duration_ns for task in tasks) == [20_000] * 2 + [30_000] * 2 + [40_000] * 2
        assert abs(simulate(graph).makespan_ns - 820_000) <= 1
        straggler = graph.select(name="^first$", rank=1)
        graph.scale(straggler, 50)  # 500 us instead of 10, and the synchronisation waits for it
        ends = simulate(graph).end_ns[tasks.ids]
        assert ends.max() > 1_200_000


def test_collectives_of_other_groups_are_not_joined(make: Make) -> None:
    first = [*idle_launch(), *collective(100, 30, 5), *collective(900, 30, 6)]
    second = [*idle_launch(), *collective(5_000, 30, 5), *collective(30_000, 30, 6)]
    graph = make(first, second)
    assert graph.info.facts["collectives"] == 0
    assert warned(graph, "ranks that are not loaded")


def test_ranks_without_numbers_are_numbered_and_the_result_says_so(make: Make, tmp_path: Path) -> None:
    events = [*idle_launch(), *collective(100, 30, 5)]
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"traceEvents": events}))
    graph = load([tmp_path / "a.json", tmp_path / "b.json"])
    assert graph.info.ranks == (0, 1)
    assert warned(graph, "do not name distinct ranks")


def test_ranks_of_different_steps_are_refused(make: Make) -> None:
    step = lambda number: span("user_annotation", f"ProfilerStep#{number}", 0, 200)  # noqa: E731
    with pytest.raises(TraceError, match="no step in common"):
        make([step(1), *idle_launch()], [step(2), *idle_launch()])


def test_a_window_without_a_step_is_refused(make: Make, tmp_path: Path) -> None:
    make([span("user_annotation", "ProfilerStep#7", 0, 200), *idle_launch()])
    with pytest.raises(TraceError, match=r"no step between 1 and 3 in trace0\.json; it has steps 7 to 7"):
        load(tmp_path / "trace0.json", window=(1, 3))


def test_no_device_work(make: Make) -> None:
    graph = make([span("cpu_op", "aten::mm", 0, 10), span("cpu_op", "aten::add", 12, 10)])
    assert warned(graph, "no device work")
    assert simulate(graph).makespan_ns == graph.info.measured_ns == 22_000


def test_no_cpu_events(make: Make) -> None:
    graph = make([kernel("a", 5, 10, 1), kernel("b", 16, 10, 2)])
    assert warned(graph, "launched before the window or without a record")
    assert simulate(graph).makespan_ns == graph.info.measured_ns == 21_000


def test_missing_correlations(make: Make) -> None:
    events = idle_launch()
    lost = kernel("lost", 40, 10, 0)
    del lost["args"]["correlation"]
    graph = make([*events, lost, span("cpu_op", "after", 60, 5)])
    assert warned(graph, "1 of 2 device events")
    assert simulate(graph).start_ns[one(graph, "lost")] == 40_000


def test_no_synchronisation_waits_for_work_that_began_after_it(make: Make) -> None:
    """Launches that are not recorded lie behind the synchronisation that was over before their work began."""
    late = [kernel("late", 100, 50, 0), kernel("later", 151, 9, 0)]
    for one_of in late:
        del one_of["args"]["correlation"]
    graph = make([
        *idle_launch(), call("cudaDeviceSynchronize", 22, 18, 3), span("cpu_op", "after", 60, 5), *late,
        call("cudaDeviceSynchronize", 120, 45, 4), span("cpu_op", "end", 170, 5),
    ])  # fmt: skip
    result = simulate(graph)
    first, second = graph.select(name="cudaDeviceSynchronize")
    assert result.end_ns[first] == 40_000 and result.end_ns[second] == 165_000
    assert result.start_ns[one(graph, "late")] == 100_000 and result.makespan_ns == graph.info.measured_ns
    graph.scale(graph.select(name="late"), 2)
    again = simulate(graph)
    assert again.end_ns[first] == 40_000
    assert again.end_ns[second] == 165_000 + 59_000, "the second waits for both, which follow one another"


def test_a_device_clock_that_runs_ahead_is_moved(make: Make) -> None:
    events = [*idle_launch(), call("cudaLaunchKernel", 100, 4, 3), kernel("early", 99, 10, 3)]
    graph = make(events)
    assert simulate(graph).start_ns[one(graph, "early")] == 100_000


def test_clocks_that_disagree_by_milliseconds_are_reported(make: Make) -> None:
    one = [call("cudaLaunchKernel", 9000, 4, 3), kernel("early", 100, 10, 3)]
    two = [call("cudaLaunchKernel", 9010, 4, 4), kernel("early too", 110, 10, 4)]
    graph = make([*idle_launch(), *one, *two])
    assert warned(graph, "the clocks of CPU and device disagree"), "most work begins before its launch"
    graph = make([*idle_launch(), *one])
    assert warned(graph, "1 of 2 device events"), "a number that came again says nothing of clocks"


def test_a_trace_without_marks_or_repetition_is_one_step(make: Make) -> None:
    graph = make(idle_launch())
    assert warned(graph, "the whole trace counts as one step") and graph.info.steps == (0,)


def test_idle_time_without_a_reason_is_counted(make: Make) -> None:
    graph = make([
        *idle_launch(), call("cudaLaunchKernel", 100, 4, 3), kernel("mystery", 900, 10, 3),
        call("cudaDeviceSynchronize", 110, 810, 4),
    ])  # fmt: skip
    assert graph.info.unexplained_ns == 794_000
    assert warned(graph, "no known reason")


def test_waiting_for_room_beside_another_stream_is_device_time(make: Make) -> None:
    """A kernel that starts 700 us late while another stream keeps the device busy waits for the device: it starts
    earlier when the device is faster, which an idle time without a reason would not."""
    events = [
        *idle_launch(),
        call("cudaLaunchKernel", 30, 4, 3), kernel("large", 36, 1000, 3),
        call("cudaLaunchKernel", 40, 4, 4), kernel("small", 746, 20, 4, stream=8),
    ]  # fmt: skip
    graph = make(events)
    assert warned(graph, "started 700 µs late")
    assert graph.info.unexplained_ns == 0
    assert simulate(graph).start_ns[one(graph, "small")] == 746_000
    faster = graph.copy()
    faster.scale(faster.select(kind=TaskKind.GPU), 0.5)
    # the synchronisation before the launch ends 5 us earlier as well
    assert simulate(faster).start_ns[one(faster, "small")] == 46_000 - 5_000 + 350_000


def test_a_gap_is_the_work_of_the_span_that_goes_on_longest(make: Make) -> None:
    """div copies its scalar two spans further down for 1 us each, then divides for 90 us; all of that is one gap."""
    graph = make([
        span("cpu_op", "aten::div", 0, 100),
        span("cpu_op", "aten::to", 5, 5),
        span("cpu_op", "aten::_to_copy", 6, 3),
        span("cpu_op", "aten::copy_", 7, 1),
        span("cpu_op", "aten::next", 110, 10),
    ])  # fmt: skip
    own = SelfTimes(graph).total_ns()
    assert own[one(graph, "aten::copy_")] == 1000
    assert own[one(graph, "aten::div")] == 5000 + (100 - 8) * 1000


@pytest.mark.parametrize(
    ("on_kernel", "on_operator", "size"),
    [
        ({"Collective name": "allreduce", "In msg nelems": 100, "Out msg nelems": 400, "dtype": "BFloat16"}, {}, 800),
        ({}, {"In msg nelems": 50, "dtype": "Long", "Collective name": "allreduce"}, 400),
        ({}, {"Input Dims": [[6144], [], []], "Input type": ["float", "Scalar", ""]}, 24_576),
        ({}, {}, 0),
        ({"Collective name": "allreduce", "In msg nelems": "many", "Out msg nelems": -5}, {}, 0),
    ],
)
def test_how_much_a_collective_moves(
    make: Make, on_kernel: dict[str, Any], on_operator: dict[str, Any], size: int
) -> None:
    """As torch.distributed records it on the kernel, on the operator, or only by the operator's shapes."""
    message = kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 40, 20, 3, stream=20)
    message["args"].update(on_kernel)
    events = [
        *idle_launch(), span("cpu_op", "record_param_comms", 25, 12, **on_operator),
        call("cudaLaunchKernel", 30, 4, 3), message,
    ]  # fmt: skip
    graph = make(events)
    (task,) = graph.select(kind=TaskKind.COMM)
    assert graph.task(task).bytes == size


def test_a_kernel_that_comes_to_stand_before_a_record_is_awaited_too(make: Make) -> None:
    sync = {"cuda_sync_kind": "Event Sync", "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 4}
    graph = make([
        *idle_launch(), call("cudaLaunchKernel", 100, 4, 3), kernel("work", 106, 50, 3),
        call("cudaEventRecord", 110, 2, 4), call("cudaEventSynchronize", 120, 38, 5),
        span("cuda_sync", "Event Sync", 120, 36, 1_000_007, correlation=5, stream=7, device=0, **sync),
        span("cpu_op", "after", 160, 5),
    ])  # fmt: skip
    before = simulate(graph).makespan_ns
    work, launch = one(graph, "work"), graph.select(name="cudaLaunchKernel").ids[-1]
    graph.insert("more", TaskKind.GPU, graph.task(work).lane, 30_000, after=work, launch=int(launch))
    assert simulate(graph).makespan_ns == before + 30_000


def test_taking_memory_from_the_driver_waits_for_the_device(make: Make) -> None:
    events = [
        *idle_launch(), call("cudaLaunchKernel", 100, 4, 3), kernel("work", 106, 400, 3),
        call("cudaMalloc", 110, 406, 4), span("cpu_op", "after", 520, 5),
    ]  # fmt: skip
    graph = make(events)
    assert warned(graph, "1 calls that take or pin memory waited")
    assert graph.task(one(graph, "cudaMalloc")).duration_ns == 10_000
    graph.scale(one(graph, "work"), 0.5)
    assert simulate(graph).end_ns[one(graph, "after")] == 325_000
    # one that returned while the device was at work had not waited
    quick = make([event if event["name"] != "cudaMalloc" else {**event, "dur": 200} for event in events])
    assert not warned(quick, "take or pin memory")


def test_copies_share_what_is_worked_out_until_one_differs(make: Make) -> None:
    graph = make(idle_launch())
    asked: list[Graph] = []

    def kinds(of: Graph) -> list[int]:
        asked.append(of)
        return [int(kind) for kind in of.column("kind")]

    first = graph.remembered(kinds, "kind")
    one, other = graph.copy(), graph.copy()
    assert one.remembered(kinds, "kind") is first
    one.tasks.write("kind")[0] = other.tasks.write("kind")[0] = 1 - first[0]
    one.tasks.write("kind")[1] = 7
    assert one.remembered(kinds, "kind")[1] == 7
    assert other.remembered(kinds, "kind")[1] == first[1]
    assert graph.remembered(kinds, "kind") is first
    other.tasks.write("duration_ns")[0] = 5
    length = len(other)
    other.insert("more", TaskKind.CPU, 0, 1)
    assert len(other.remembered(kinds, "kind")) == length + 1
    assert len(asked) == 4
