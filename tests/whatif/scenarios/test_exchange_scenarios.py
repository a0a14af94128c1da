"""Scenarios that exchange gradients: bucket and slice schedules worked out by hand."""

from __future__ import annotations

import math

import pytest

from leadline.whatif.collectives import Collective, Network, collective_ns, ring_ns, tree_ns
from leadline.whatif.draws import technique
from leadline.whatif.kinds import LaneKind, Phase, TaskKind

US = 1000
F, B = Phase.FORWARD, Phase.BACKWARD


def two_layers(step, elements=(25_000, 25_000), update_us=50):
    """Forward 100 + 100, backward 100 + 100 (layer 2 first), gradients as given, an update."""
    step.kernel("sgemm", 100, F, layer="L1")
    step.kernel("sgemm", 100, F, layer="L2")
    step.kernel("sgemm", 100, B, layer="L2")
    step.gradient(elements[1], "L2")
    step.kernel("sgemm", 100, B, layer="L1")
    step.gradient(elements[0], "L1")
    if update_us:
        step.kernel("multi_tensor_apply", update_us, Phase.OPTIMIZER)
    return step.graph()


def test_ring_and_tree_formulas():
    network = Network(1e9, 1000.0)
    assert ring_ns(Collective.ALL_REDUCE, 1_000_000, 4, network) == pytest.approx(2 * 0.75 * 1e6 + 2 * 3 * 1000)
    assert tree_ns(Collective.ALL_REDUCE, 1_000_000, 4, network) == pytest.approx(2 * 1e6 + 2 * 2 * 1000)
    assert ring_ns(Collective.ALL_GATHER, 1_000_000, 4, network) == pytest.approx(0.75 * 1e6 + 3 * 1000)
    assert collective_ns(Collective.ALL_REDUCE, 8, 1024, network) == pytest.approx(
        tree_ns(Collective.ALL_REDUCE, 8, 1024, network)
    ), "trees win for small messages on many ranks"
    assert collective_ns(Collective.ALL_REDUCE, 8, 1, network) == 0


def test_distributed_one_bucket_after_the_backward_pass(step, ask):
    """200 kB in one bucket over 1 GB/s between two workers: 200 us after the backward pass, before the update."""
    graph = two_layers(step)
    found = ask(graph, "distributed", world_size="2", bandwidth="1GB/s", latency="0us", first_bucket_size="1MB")
    assert found.fastest_ns == (400 + 200 + 50) * US
    late = 0.01 * (2 * math.log(2)) ** 0.5 * 450  # the slower of two workers
    assert found.predicted_ns == pytest.approx((400 + 200 * 1.15 + late + 50) * US, rel=1e-4)
    assert found.speedup == pytest.approx(2 * 450 / (450 + 230 + late), rel=1e-3), "samples of two workers"


def test_distributed_overlaps_with_backward(step, ask):
    """Two buckets of 100 us each: the first hides behind the backward pass of layer 1."""
    graph = two_layers(step)
    settings = {"world_size": "2", "bandwidth": "1GB/s", "latency": "0us"}
    found = ask(graph, "distributed", first_bucket_size="100kB", bucket_size="100kB", **settings)
    assert found.applied_to["all reduces"] == 2
    assert found.fastest_ns == (400 + 100 + 50) * US


def test_distributed_on_one_worker_is_the_replay(step, ask):
    found = ask(two_layers(step), "distributed", world_size="1", bandwidth="1GB/s")
    assert found.predicted_ns == 450 * US
    assert found.speedup == 1.0


def test_distributed_more_bandwidth_is_never_slower(step, ask):
    graph = two_layers(step, (2_500_000, 2_500_000))
    times = [
        ask(graph, "distributed", world_size="8", bandwidth=bandwidth).predicted_ns
        for bandwidth in ("1Gb/s", "1GB/s", "10GB/s", "100GB/s")
    ]
    assert times == sorted(times, reverse=True)


def test_distributed_needs_sizes(step, ask):
    step.kernel("sgemm", 100, F)
    step.kernel("sgemm", 100, B)
    with pytest.raises(ValueError, match=r"add --set gradient_bytes=100MB"):
        ask(step.graph(), "distributed", world_size="2")
    found = ask(step.graph(), "distributed", world_size="2", gradient_bytes="1MB", bandwidth="1GB/s", latency="0s")
    assert found.fastest_ns == (200 + 1000) * US


def test_distributed_rescales_measured_collectives(step, ask):
    """A ring of 2 at 1 GB/s moves 1 MB in 1000 us; of 8 in 1750 us."""
    step.kernel("sgemm", 100, B)
    graph = step.graph(world_size=2)
    graph.insert("ncclDevKernel_AllReduce_Sum_f32_RING", TaskKind.COMM, 1, 1000 * US, bytes=1_000_000, after=1)
    settings = {"latency": "0us", "algorithm": "ring"}
    assert ask(graph, "distributed", world_size="2", **settings).predicted_ns == 1100 * US
    assert ask(graph, "distributed", world_size="8", **settings).predicted_ns == 1850 * US
    # a network that is named replaces the measured one
    assert ask(graph, "distributed", world_size="2", bandwidth="4GB/s", **settings).fastest_ns == 350 * US
    assert ask(graph, "distributed", world_size="2", bandwidth="500MB/s", **settings).fastest_ns == 2100 * US


def test_a_given_network_needs_the_size_of_what_it_moves(step, ask):
    step.kernel("sgemm", 100, B)
    graph = step.graph(world_size=2)
    graph.insert("ncclDevKernel_Generic", TaskKind.COMM, 1, 1000 * US, after=1)
    found = ask(graph, "distributed", world_size="8", bandwidth="1GB/s")
    assert found.fastest_ns == found.slowest_ns == 1100 * US
    assert found.warnings == ("the trace does not show the size of 1 collectives; they keep their time",)


def test_dgc_scales_the_exchange(step, ask):
    """1 % of the values, each with its index: 2 % of 200 us, and kernels to compress and decompress."""
    graph = two_layers(step)
    settings = {"world_size": "2", "bandwidth": "1GB/s", "latency": "0us", "ratio": "1%"}
    found = ask(graph, "distributed", "dgc", **settings)
    assert found.applied_to["collectives"] == 1
    assert found.applied_to["inserted kernels"] == 2
    per_byte = 1e9 / (0.8 * 3350e9)
    passes = technique("dgc_passes", larger_is_faster=False).optimistic
    compress, decompress = 200_000 * per_byte * passes, 200_000 * per_byte * 1.01
    assert found.fastest_ns == pytest.approx(450 * US + 4 * US + 9.8 * US + compress + decompress, rel=1e-4)


def test_dgc_leaves_an_exchange_of_activations_alone(step, ask):
    """An all-to-all sums nothing."""
    step.kernel("sgemm", 100, B)
    graph = step.graph(world_size=2)
    graph.insert("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", TaskKind.COMM, 1, 1000 * US, bytes=1_000_000, after=1)
    with pytest.raises(ValueError, match="no gradient exchange to compress"):
        ask(graph, "dgc")


def test_dgc_alone_has_nothing_to_compress(step, ask):
    with pytest.raises(ValueError, match="combine it with --scenario distributed"):
        ask(two_layers(step), "dgc")


P3 = {"world_size": "2", "bandwidth": "1GB/s", "latency": "0us"}


def test_p3_next_forward_waits_for_its_pulls(step, ask):
    """Push and pull of 50 us per layer: layer 1 is pushed at 400, pulled until 500; the next step starts then."""
    graph = two_layers(step, update_us=0)
    found = ask(graph, "p3", slice_size="1MB", **P3)
    assert found.fastest_ns == 500 * US
    assert found.applied_to == {"push and pull tasks": 4}


def test_p3_priority_beats_order_of_readiness(step, ask):
    """Two slices of 100 us per layer. In order, layer 1 arrives at 800; by priority at 700 (see the docstring of p3)."""
    graph = two_layers(step, (100_000, 100_000), update_us=0)
    fifo = ask(graph, "p3", slice_size="200kB", order="fifo", **P3)
    priority = ask(graph, "p3", slice_size="200kB", **P3)
    assert fifo.fastest_ns == 800 * US
    assert priority.fastest_ns == 700 * US


def test_blueconnect_stages(step, ask):
    """200 kB, two workers in each of two machines: 100 us inside, 50 us between, and back again."""
    graph = two_layers(step)
    found = ask(
        graph, "blueconnect", world_size="4", workers_per_machine="2", bandwidth="1GB/s", local_bandwidth="1GB/s",
        latency="0us",
    )  # fmt: skip
    assert found.fastest_ns == (400 + 100 + 50 + 50 + 100 + 50) * US
    assert found.applied_to == {"stages": 4}


def test_blueconnect_beats_a_ring_over_slow_links(step, ask):
    graph = two_layers(step, (12_500_000, 12_500_000))
    shared = {"world_size": "16", "bandwidth": "1GB/s", "latency": "5us"}
    flat = ask(graph, "distributed", **shared)
    levels = ask(graph, "blueconnect", workers_per_machine="8", local_bandwidth="100GB/s", **shared)
    assert levels.predicted_ns < flat.predicted_ns


def test_blueconnect_needs_whole_machines(step, ask):
    with pytest.raises(ValueError, match="not a multiple"):
        ask(two_layers(step), "blueconnect", world_size="6", workers_per_machine="4")


def test_no_straggler(new_step, ask):
    """Ranks compute 100 and 200 us and meet in a collective of 50 us: 250 us; equal ranks take 200 us."""
    step = new_step()
    builder = step.builder
    group = 0
    for rank, us in ((0, 100), (1, 200)):
        thread = builder.lane(f"main {rank}", LaneKind.THREAD, rank=rank)
        stream = builder.lane(f"stream {rank}", LaneKind.STREAM, rank=rank, device=rank)
        for name, kind, length in (("sgemm", TaskKind.GPU, us), ("nccl all_reduce", TaskKind.COMM, 50)):
            launch = builder.task("launch", TaskKind.CPU, thread, 0)
            builder.task(name, kind, stream, length * US, launch=launch, group=group if kind == TaskKind.COMM else -1)
    graph = step.graph()
    assert ask(graph, "faster", device="network", factor="1").predicted_ns == 250 * US
    found = ask(graph, "no_straggler")
    assert found.predicted_ns == 200 * US
    assert ask(graph, "faster", device="network", factor="50").predicted_ns == 201 * US, "waiting is not transfer"


def test_no_straggler_needs_all_ranks(step, ask):
    with pytest.raises(ValueError, match="traces of all ranks together"):
        ask(two_layers(step), "no_straggler")


def test_one_rank_cannot_tell_waiting_from_transfer(step, ask):
    """Two collectives of equal size took 300 and 900 us: at least 600 us of the second were waiting."""
    step.kernel("sgemm", 100, B)
    graph = step.graph(world_size=8)
    for us in (300, 900):
        task = graph.insert("nccl all_reduce", TaskKind.COMM, 1, us * US, bytes=1_000_000)
        graph.tasks.write("start_ns")[task] = 0
    found = ask(graph, "faster", device="network", factor="3")
    assert found.predicted_ns == (100 + 1200 - 2 * 200) * US
    assert found.fastest_ns == (100 + 400) * US
    assert found.slowest_ns == 1300 * US


def collective(step, name, us, **recorded):
    """A collective of one rank's trace with its process group."""
    graph = step.graph(world_size=16)
    graph.details = [*graph.details, {"Collective name": name, **recorded}]
    task = graph.insert("ncclDevKernel_RING", TaskKind.COMM, 1, us * US, bytes=1_000_000, after=1, phase=Phase.BACKWARD)
    graph.tasks.write("detail")[task] = len(graph.details) - 1
    return graph


@pytest.mark.parametrize(
    ("recorded", "grows"),
    [
        ({"Process Group Description": "mesh_dp", "Group size": 4}, True),
        ({"Process Group Description": "mesh_tp", "Group size": 4}, False),
        ({"Process Group Description": "expert_parallel", "Group size": 4}, False),
        ({"Group size": 16}, True),
    ],
)
def test_only_groups_that_copy_the_model_grow_with_workers(step, ask, recorded, grows):
    step.kernel("sgemm", 100, Phase.BACKWARD)
    graph = collective(step, "allreduce", 1000, **{"Process Group Name": "1", **recorded})
    settings = {"latency": "0us", "algorithm": "ring"}
    found = ask(graph, "distributed", world_size="64", **settings)
    size = recorded["Group size"]
    longer = (1 - 1 / (4 * size)) / (1 - 1 / size) if grows else 1.0
    assert found.predicted_ns == pytest.approx((100 + 1000 * longer) * US, rel=1e-3)


def test_a_message_between_two_workers_takes_the_same_among_more(step, ask):
    step.kernel("sgemm", 100, Phase.BACKWARD)
    graph = collective(step, "send", 1000, **{"Process Group Name": "1", "Group size": 2})
    assert ask(graph, "distributed", world_size="64", latency="0us").predicted_ns == 1100 * US


def test_the_network_follows_from_the_number_of_workers_and_is_said(new_step, ask):
    for workers, said in (("8", "nvlink, 450 GB/s"), ("512", "infiniband-ndr, 50 GB/s")):
        step = new_step("NVIDIA H100 80GB HBM3")
        step.kernel("sgemm", 10_000, Phase.BACKWARD)
        step.kernel("multi_tensor_apply_kernel", 50, Phase.OPTIMIZER)
        found = ask(step.graph(), "distributed", world_size=workers, gradient_bytes="1GB")
        assert any(said in text and "is assumed" in text for text in found.assumptions), found.assumptions
        assert found.high_gain / found.low_gain > 1.1, "a network that nobody named leaves room for doubt"
