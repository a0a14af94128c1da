"""The trace window of our own profiles as event tables and as a graph."""

from __future__ import annotations

import pytest

from leadline.profiles.build import build
from leadline.steps.of_events import find_steps
from leadline.trace.profile_window import read_profile
from leadline.trace.tables import Kind, TraceError
from leadline.whatif import EdgeType, Graph, Phase, TaskKind, simulate
from leadline.whatif.build.build import Window
from leadline.whatif.build.build import build as build_graph
from leadline.whatif.draws import technique
from leadline.whatif.predict import predict
from leadline.whatif.scenarios.loader import loads_of, worker_batch_ns, worker_count

TREE = """
process train.py | pid=5 rank=1
  thread main | tid=50
    phase step #step
    python main @ train.py:3
      module model.0 [Linear] #module
        operator aten::linear #linear | detail={"shapes":[[4,4]],"types":["float"]}
          api cudaLaunchKernel #launch
            kernel gemm #gemm
          phase backward
            operator AddmmBackward0 #backward
      phase optimizer #optimizer
        operator aten::add_ #add
          api cudaStreamSynchronize #synchronise
"""
EVENTS = """
start_ns duration_ns kind        node         thread device stream correlation sequence step awaits
1000     9000        step        #step        0      -1     -1     0           -1       4    -1
1500     1000        operator    #linear      0      -1     -1     0           7        4    -1
1700     300         api         #launch      0      0      7      11          -1       4    -1
2100     4000        kernel      #gemm        -1     0      7      11          -1       4    -1
3000     500         operator    #backward    0      -1     -1     0           7        4    -1
4000     3000        operator    #add         0      -1     -1     0           -1       4    -1
4500     2000        synchronize #synchronise 0      0      -1     12          -1       4    7
""".replace("#", "")


def test_events_modules_phases_and_steps() -> None:
    (trace,) = read_profile(build(TREE, events=EVENTS))
    names = {trace.name(row): row for row in range(len(trace)) if trace.events["kind"][row] != Kind.MODULE}
    assert trace.rank == 1 and trace.threads[0].tid == 50
    assert trace.events["start_ns"][names["gemm"]] == 1100
    assert trace.events["correlation"][names["gemm"]] == trace.events["correlation"][names["cudaLaunchKernel"]] == 11
    linear = trace.events["detail"][names["aten::linear"]]
    assert trace.details[linear] == {"Input Dims": [[4, 4]], "Input type": ["float"]}
    modules = [(trace.name(row), int(trace.end_ns[row])) for row in trace.of_kind(Kind.MODULE)]
    assert modules == [("model.0", 1500), ("model.0", 2500)], "forward, and what runs backward below it"
    assert [trace.name(row) for row in trace.of_kind(Kind.PHASE)] == ["backward", "optimizer"]
    steps = find_steps(trace)
    assert (steps.found_by, steps.steps[0].number) == ("profiler", 4)


def test_events_keep_their_node_and_step() -> None:
    profile = build(TREE, events=EVENTS)
    (trace,) = read_profile(profile)
    for row in range(len(trace)):
        node = profile.tree.node(int(trace.events["node"][row]))
        assert trace.events["kind"][row] == Kind.STEP or node.name == trace.name(row)
        assert trace.events["step"][row] == 4
    (kernel,) = trace.of_kind(Kind.KERNEL)
    assert profile.tree.node(int(trace.events["node"][kernel])).nearest("python").line == 3


CALLS = """
thread main
  python main @ train.py:3
    module block [Block]
      operator aten::relu #first
  python main @ train.py:4
    module block [Block]
      operator aten::relu #second
        phase backward
          operator ReluBackward0 #backward
"""


def spans(calls: str) -> list[tuple[str, int, int]]:
    """Module spans of operators that follow each other without a pause: name, start and duration in ns."""
    parts = [call.split() for call in calls.split(",")]
    rows = [f"{at * 10} 10 operator {label} 0 {step}" for at, (label, step) in enumerate(parts)]
    (trace,) = read_profile(build(CALLS, events="\n".join(["start_ns duration_ns kind node thread step", *rows])))
    starts, durations = trace.events["start_ns"].tolist(), trace.events["duration_ns"].tolist()
    return [(trace.name(row), starts[row], durations[row]) for row in trace.of_kind(Kind.MODULE).tolist()]


def test_calls_of_one_module_that_follow_each_other_are_two_spans() -> None:
    assert spans("first 1, second 1") == [("block", 0, 10), ("block", 10, 10)], "from two lines"
    assert spans("first 1, first 2") == [("block", 0, 10), ("block", 10, 10)], "in two steps"
    assert spans("second 1, backward 1") == [("block", 0, 10), ("block", 10, 10)], "forward and backward"
    assert spans("first 1, first 1") == [("block", 0, 20)], "operators of one call may look like this"


def test_recorded_module_spans_are_taken_as_they_are() -> None:
    rows = """
    start_ns duration_ns kind     node      thread step
    0        10          module   block     0      1
    1        5           operator first     0      1
    10       10          module   block     0      1
    11       5           operator first     0      1
    40       10          operator backward  0      1
    """
    tree = CALLS.replace("block [Block]", "block [Block] #block", 1)
    (trace,) = read_profile(build(tree, events=rows))
    starts, durations = trace.events["start_ns"].tolist(), trace.events["duration_ns"].tolist()
    found = [(starts[row], durations[row]) for row in trace.of_kind(Kind.MODULE).tolist()]
    assert found == [(0, 10), (10, 10), (40, 10)], "two calls, and what runs backward below the module"


MACHINES = """
process train.py | pid=5 start_ns=1000
  thread main | tid=50
    phase step #step0
    operator aten::linear #linear
process train.py | pid=5 start_ns=2000
  thread main | tid=50
    phase step #step1
    operator aten::add #add
process worker | pid=6 parent_pid=5 start_ns=3000
  thread main | tid=60
    operator aten::stack #stack
"""


def test_machines_may_share_pids() -> None:
    """Two machines, or two containers, each with a process 5; the loader worker belongs to the second."""
    events = "\n".join(
        [
            "start_ns duration_ns kind node thread step",
            "100 50 step step0 0 0",
            "110 20 operator linear 0 0",
            "200 50 step step1 1 0",
            "210 20 operator add 1 0",
            "220 10 operator stack 2 -1",
        ]
    )
    profile = build(MACHINES, events=events)
    profile.meta["processes"] = [
        {"pid": 5, "started_at_ns": 900, "hostname": "a", "clock": {"monotonic_ns": 0, "realtime_ns": 10_000}},
        {"pid": 5, "started_at_ns": 1900, "hostname": "b", "clock": {"monotonic_ns": 0, "realtime_ns": 70_000}},
        {"pid": 6, "started_at_ns": 2900, "hostname": "b", "clock": {"monotonic_ns": 0, "realtime_ns": 70_000}},
    ]
    first, second = read_profile(profile)
    assert (first.origin_ns, second.origin_ns) == (10_100, 70_200)
    assert {first.name(row) for row in first.of_kind(Kind.OPERATOR)} == {"aten::linear"}
    assert {second.name(row) for row in second.of_kind(Kind.OPERATOR)} == {"aten::add", "aten::stack"}
    assert second.threads[0].process != second.threads[1].process


@pytest.mark.parametrize("identity", [[], {}, 3, "", None])
def test_an_identity_that_is_none_is_left_alone(identity: object) -> None:
    profile = build(MACHINES, events="start_ns duration_ns kind node thread step\n110 20 operator linear 0 0")
    profile.meta["processes"] = [{"pid": 5, "identity": identity, "parent_identity": identity}]
    assert len(read_profile(profile)) == 1


def test_the_graph_of_a_window() -> None:
    (trace,) = read_profile(build(TREE, events=EVENTS))
    steps = find_steps(trace)
    graph = build_graph(trace, Window(steps.steps, steps.found_by))
    (kernel,) = graph.select(kind=TaskKind.GPU)
    assert (graph.task(kernel).layer, graph.shapes(kernel)) == ("model.0", [[4, 4]])
    (backward,) = graph.select(name="AddmmBackward0")
    assert (graph.task(backward).layer, graph.task(backward).phase) == ("model.0", Phase.BACKWARD)
    result = simulate(graph)
    assert result.makespan_ns == graph.info.measured_ns == 9000  # from mark to mark, with the Python behind
    graph.scale(kernel, 3)
    assert simulate(graph).end_ns[graph.select(name="cudaStreamSynchronize").ids[0]] == 1100 + 12000 + 400


def test_a_profile_without_a_window_says_how_to_record_one() -> None:
    with pytest.raises(TraceError, match="--trace steps=3"):
        read_profile(build(TREE.replace(" #", " #")), "run.leadline")


WORKERS = """
process train.py | pid=5
  thread main | tid=50
    phase step #step
    phase data loading #loading
    operator aten::linear #linear
process worker | pid=6 parent_pid=5
  thread main | tid=60
    operator aten::stack #stack
"""


def loader_events(batch_ns: int, train_ns: int) -> str:
    """Three steps; the worker makes one batch after the other, the loop waits for each and trains on it."""
    lines = ["start_ns duration_ns kind node thread step"]
    now = 0
    for step in range(3):
        made = (step + 1) * batch_ns
        begin, received = now, max(now, made) + 200
        now = received + train_ns
        lines.append(f"{begin} {received - begin} phase loading 0 {step}")
        lines.append(f"{received} {train_ns} operator linear 0 {step}")
        lines.append(f"{made - batch_ns} {batch_ns} operator stack 1 -1")
        lines.append(f"{begin} {now - begin} step step 0 {step}")
    rows = sorted(lines[1:], key=lambda line: int(line.split()[0]))
    return "\n".join([lines[0], *rows])


@pytest.mark.parametrize("faster", [1, 2, 4])
def test_workers_hand_over_batches(faster: int) -> None:
    def graph(batch_ns: int) -> Graph:
        (trace,) = read_profile(build(WORKERS, events=loader_events(batch_ns, 40_000)))
        steps = find_steps(trace)
        return build_graph(trace, Window(steps.steps, steps.found_by))

    slow = graph(200_000)
    worker = slow.select(name="aten::stack")
    assert {slow.task(task).kind for task in worker} == {TaskKind.DATA}
    assert (slow.edges["type"] == EdgeType.DATA).sum() == 3
    slow.scale(worker, 1 / faster)
    assert simulate(slow).makespan_ns == graph(200_000 // faster).info.measured_ns


def marked_worker(batch_ns: int) -> Graph:
    """The same with marks around the worker's batches, and training of 40 us."""
    tree = WORKERS.replace(
        "    operator aten::stack #stack", "    phase data loading #made\n      operator aten::stack #stack"
    )
    head, *rows = loader_events(batch_ns, 40_000).splitlines()
    for at, row in enumerate(list(rows)):
        start, duration, *_ = row.split()
        if " stack " in row:
            rows[at] = f"{int(start) + 1000} {int(duration) - 2000} operator stack 1 -1"
            rows.append(f"{start} {duration} phase made 1 -1")
    (trace,) = read_profile(build(tree, events="\n".join([head, *sorted(rows, key=lambda row: int(row.split()[0]))])))
    steps = find_steps(trace)
    return build_graph(trace, Window(steps.steps, steps.found_by))


def test_the_work_of_loader_workers_is_measured_not_guessed() -> None:
    graph = marked_worker(2_000_000)
    assert worker_count(graph) == 1
    assert worker_batch_ns(graph) == 2_000_000
    assert "aten::linear" not in {graph.names[row] for row in graph.column("name")[loads_of(graph).ids]}
    found = predict(graph, ["data_loading"], {"workers": "2"}).scenarios[0]
    assert not found.warnings, "their number is known"
    assert any("the trace shows 1 worker; one batch takes 2.01 ms" in text for text in found.assumptions)
    scaling = technique("loader_scaling", larger_is_faster=True).expected
    assert found.predicted_ns == pytest.approx(2_000_000 / (2 * scaling), rel=0.15)
