"""Real traces of others: replay, collectives across ranks, no frozen waits, layers. Numbers: bench/whatif/replay.py."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from leadline.whatif import EdgeType, Graph, TaskKind, load, simulate
from leadline.whatif.simulator import step_completions

SINGLE_RANK = (
    "param-resnet-2080ti/resnet_kineto.json.gz",
    "param-linear-2080ti/linear_kineto.json.gz",
    "triosim-vgg13-h100/profiler_vgg13-iter41.json",
    "hta/nccl_data.json.gz",
    "hta/rank0_of16_cudagraph.json.gz",
    "hta/alexnet_cuda_sync.json.gz",
    "hta/cuda_event_sync.json.gz",
    "hta/cuda_event_sync_multi_stream.json.gz",
    "tracelens/mi300_resnet_ddp_rank0of8_actckpt.json.gz",
)
DEVICE = (TaskKind.GPU, TaskKind.COMM)
HOST = (TaskKind.CPU, TaskKind.DATA)


@cache
def graph_of(path: Path) -> Graph:
    return load(path)


def makespan(graph: Graph) -> int:
    return simulate(graph).makespan_ns


@pytest.mark.parametrize("name", SINGLE_RANK)
def test_every_step_replays_within_one_percent(traces: Path, name: str) -> None:
    graph = graph_of(traces / name)
    result = simulate(graph)
    measured = np.array(graph.info.step_ns)
    assert measured.min() > 0
    assert np.abs(result.per_step_ns / measured - 1).max() < 0.01
    assert abs(result.makespan_ns / graph.info.measured_ns - 1) < 0.01


@pytest.mark.parametrize("name", SINGLE_RANK[:7])
def test_both_simulators_agree(traces: Path, name: str) -> None:
    graph = graph_of(traces / name)
    compiled, plain = simulate(graph), simulate(graph, compiled=False)
    for field in ("start_ns", "end_ns", "slack_ns", "critical_path", "per_step_ns"):
        assert np.array_equal(getattr(compiled, field), getattr(plain, field)), field


def test_eight_ranks_with_rendezvous(traces: Path) -> None:
    graph = graph_of(traces / "param-dlrm-8rank-v100/dlrm_kineto.tar.gz")
    result = simulate(graph)
    assert graph.info.ranks == tuple(range(8))
    assert abs(result.makespan_ns / graph.info.measured_ns - 1) < 0.03
    measured = graph.column("start_ns") + graph.column("measured_ns")
    for rank in range(8):
        mine = np.flatnonzero(graph.rank_of_tasks() == rank)
        ends = [step_completions(graph, mine, end[mine], graph.info.steps)[0] for end in (measured, result.end_ns)]
        assert abs(ends[1][-1] / ends[0][-1] - 1) < 0.03
    # eight collectives of eight ranks, and only their transfer is left in the kernels
    assert np.bincount(graph.column("group")[graph.column("group") >= 0]).tolist() == [8] * 8
    collectives = graph.select(kind=TaskKind.COMM).ids
    transfer, spent = graph.column("duration_ns")[collectives], graph.column("measured_ns")[collectives]
    ranks = graph.rank_of_tasks()[collectives]
    assert all(transfer[ranks == rank].sum() <= 217_000 < 1_746_000 <= spent[ranks == rank].sum() for rank in range(8))


def test_a_network_is_worth_what_it_transfers_not_what_kernels_wait(traces: Path) -> None:
    graph = graph_of(traces / "param-dlrm-8rank-v100/dlrm_kineto.tar.gz").copy()
    before = makespan(graph)
    graph.scale(graph.select(kind=TaskKind.COMM), 0)
    assert 0 <= before - makespan(graph) < 300_000


def frozen(graph: Graph) -> Graph:
    """The graph that a tool without synchronisation edges builds: waits are part of the calls that waited."""
    other = graph.copy()
    waiting = np.union1d(other.waits["task"], other.edges["dst"][other.edges["type"] == EdgeType.SYNC])
    other.set_duration(waiting, np.maximum(graph.column("measured_ns")[waiting], 0))
    other.disconnect(EdgeType.SYNC)
    return other


@pytest.mark.parametrize(
    ("name", "edges"),
    [
        ("triosim-vgg13-h100/profiler_vgg13-iter41.json", (EdgeType.THREAD,)),
        ("param-resnet-2080ti/resnet_kineto.json.gz", (EdgeType.SYNC, EdgeType.THREAD)),
        ("param-linear-2080ti/linear_kineto.json.gz", (EdgeType.THREAD,)),
        ("hta/nccl_data.json.gz", (EdgeType.THREAD, EdgeType.GUESSED)),
        ("tracelens/mi300_resnet_ddp_rank0of8_actckpt.json.gz", (EdgeType.GUESSED, EdgeType.THREAD)),
    ],
)
def test_no_wait_is_frozen_into_a_duration(traces: Path, name: str, edges: tuple[EdgeType, ...]) -> None:
    graph = graph_of(traces / name)
    replay = simulate(graph)
    for edge in edges:
        without = graph.copy()
        without.disconnect(edge)
        # the waits were in the edges and nowhere else: what waited starts earlier now, as a rule and not by accident
        waited = np.unique(graph.edges["dst"][graph.edges["type"] == edge])
        waited = np.union1d(waited, graph.waits["task"]) if edge == EdgeType.SYNC else waited
        early = simulate(without).start_ns[waited] < replay.start_ns[waited]
        ends = simulate(without).end_ns[waited] < replay.end_ns[waited]
        assert (early | ends).mean() > 0.1, edge


def test_frozen_waits_replay_well_and_predict_wrongly(traces: Path) -> None:
    graph = graph_of(traces / "param-resnet-2080ti/resnet_kineto.json.gz")
    wrong = frozen(graph)
    assert abs(makespan(wrong) / makespan(graph) - 1) < 0.01
    gains = []
    for each in (graph, wrong):
        faster = each.copy()
        faster.scale(faster.select(kind=HOST), 0.5, gaps=True)
        gains.append(makespan(each) / makespan(faster))
    assert gains[1] - gains[0] > 0.1


def test_layers_of_vgg13_with_adam(traces: Path) -> None:
    graph = graph_of(traces / "triosim-vgg13-h100/profiler_vgg13-iter41.json")
    work = graph.select(kind=DEVICE).ids
    time = graph.column("duration_ns")[work].astype(float)
    layers = [graph.layers[row] for row in graph.column("layer")[work]]
    modules = np.array([text.rpartition("_")[2].isdigit() for text in layers])
    optimizer = np.array([text.startswith("Optimizer.step#Adam") for text in layers])
    assert time[modules | optimizer].sum() / time.sum() > 0.99
    kernels = {graph.names[row]: graph.layers[layer] for row, layer in zip(
        graph.column("name")[work], graph.column("layer")[work], strict=True)}  # fmt: skip
    assert any("MaxPool" in layer for name, layer in kernels.items() if "max_pool" in name)
    forward = {layer for layer in layers if layer.startswith("Conv2d_")}
    assert forward == {f"Conv2d_{number}" for number in range(10)}


def test_a_window_of_some_steps(traces: Path) -> None:
    graph = load(traces / "hta/nccl_data.json.gz", window=(5, 6))
    assert graph.info.steps == (5, 6)
    assert abs(makespan(graph) / graph.info.measured_ns - 1) < 0.01


@pytest.mark.parametrize("step", [16, 17])
def test_a_window_carries_the_backlog_of_the_device(traces: Path, step: int) -> None:
    graph = load(traces / "tracelens/mi300_resnet_ddp_rank0of8_actckpt.json.gz", window=(step, step))
    assert abs(makespan(graph) / graph.info.measured_ns - 1) < 0.01
    backlog = graph.select(kind=DEVICE, predicate=lambda task: task.step == -1)
    assert len(backlog) > 100
