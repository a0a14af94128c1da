"""The graphs of backward passes that a trace window keeps."""

from __future__ import annotations

import gc

import torch

from leadline.capture.providers.torch import graphs as torch_graphs
from leadline.capture.providers.torch.graphs import Graphs


def small() -> torch.Tensor:
    x = torch.randn(3, 4, requires_grad=True)
    left, right = (x * 2).tanh(), (x * 3).exp()
    return (left + right).sum()


def test_a_graph_is_told_with_its_names_numbers_and_edges() -> None:
    graphs = Graphs()
    total = small()
    graphs.walk([total])
    (told,) = graphs.facts()
    names = {number: name for number, name, _ in told["nodes"]}
    edges = {(names[one], names[other]) for one, other in zip(told["edges"][::2], told["edges"][1::2], strict=True)}
    assert edges == {
        ("SumBackward0", "AddBackward0"),
        ("AddBackward0", "TanhBackward0"),
        ("AddBackward0", "ExpBackward0"),
        ("TanhBackward0", "MulBackward0"),
        ("ExpBackward0", "MulBackward0"),
        ("MulBackward0", "torch::autograd::AccumulateGrad"),
    }
    assert len(names) == 7 and len(told["edges"]) == 2 * 7
    numbers = {name: sequence for _, name, sequence in told["nodes"]}
    assert numbers["torch::autograd::AccumulateGrad"] == -1
    assert numbers["SumBackward0"] == total.grad_fn._sequence_nr()


def test_steps_of_a_loop_keep_no_object_that_the_garbage_collector_would_look_at() -> None:
    graphs = Graphs()
    graphs.walk([small()])
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(50):
        graphs.walk([small()])
    gc.collect()
    assert len(gc.get_objects()) - before < 10  # lists of its nodes alone were 400
    told = graphs.facts()
    assert len(told) == 51
    assert [one["edges"] for one in told] == [told[0]["edges"]] * 51
    assert [one["begin_ns"] for one in told] == sorted(one["begin_ns"] for one in told)


def test_a_graph_that_changes_is_told_as_it_was_each_time() -> None:
    graphs = Graphs()
    totals = [small(), small().tanh(), small()]
    for total in totals:
        graphs.walk([total])
    told = graphs.facts()
    assert [len(one["nodes"]) for one in told] == [7, 8, 7]
    for total, one in zip(totals, told, strict=True):
        assert one["nodes"][0][1:] == [total.grad_fn.name(), total.grad_fn._sequence_nr()]


def test_more_nodes_than_there_is_room_for_are_counted(monkeypatch) -> None:
    monkeypatch.setattr(torch_graphs, "MOST_NODES", 10)
    graphs = Graphs()
    for _ in range(3):
        graphs.walk([small()])
    assert sum(len(one["nodes"]) for one in graphs.facts()) == 10
    assert graphs.left_out > 0
