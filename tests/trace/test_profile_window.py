"""The trace window of our own profiles as event tables and as a graph."""

from __future__ import annotations

import pytest

from leadline.profile.build import build
from leadline.trace.profile_window import read_profile
from leadline.trace.steps import find_steps
from leadline.trace.tables import Kind, TraceError
from leadline.whatif import Phase, TaskKind, simulate
from leadline.whatif.build.build import Window
from leadline.whatif.build.build import build as build_graph

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
    names = {trace.name(row): row for row in range(len(trace)) if trace.events["kind"][row] < 32}
    assert trace.rank == 1 and trace.threads[0].tid == 50
    assert trace.events["start_ns"][names["gemm"]] == 1100
    assert trace.events["correlation"][names["gemm"]] == trace.events["correlation"][names["cudaLaunchKernel"]] == 11
    linear = trace.events["detail"][names["aten::linear"]]
    assert trace.details[linear] == {"Input Dims": [[4, 4]], "Input type": ["float"]}
    assert [(trace.name(row), int(trace.end_ns[row])) for row in trace.of_kind(Kind.MODULE)] == [("model.0", 2500)]
    assert [trace.name(row) for row in trace.of_kind(Kind.PHASE)] == ["backward", "optimizer"]
    steps = find_steps(trace)
    assert (steps.found_by, steps.steps[0].number) == ("profiler", 4)


def test_the_graph_of_a_window() -> None:
    (trace,) = read_profile(build(TREE, events=EVENTS))
    steps = find_steps(trace)
    graph = build_graph(trace, Window(steps.steps, steps.found_by))
    (kernel,) = graph.select(kind=TaskKind.GPU)
    assert (graph.task(kernel).layer, graph.shapes(kernel)) == ("model.0", [[4, 4]])
    (backward,) = graph.select(name="AddmmBackward0")
    assert (graph.task(backward).layer, graph.task(backward).phase) == ("model.0", Phase.BACKWARD)
    result = simulate(graph)
    assert result.makespan_ns == graph.info.measured_ns == 6500 - 1000
    graph.scale(kernel, 3)
    assert simulate(graph).end_ns[graph.select(name="cudaStreamSynchronize").ids[0]] == 1100 + 12000 + 400


def test_a_profile_without_a_window_says_how_to_record_one() -> None:
    with pytest.raises(TraceError, match="--trace steps=3"):
        read_profile(build(TREE.replace(" #", " #")), "run.leadline")
