"""What of a CPU operator's time grows with the batch, and what a call costs, on tasks drawn by hand."""

from __future__ import annotations

import pytest

from leadline.whatif.callcost import call_cost
from leadline.whatif.draws import Draw
from leadline.whatif.kinds import Phase, Selection, TaskKind
from leadline.whatif.scenarios.cpu_growth import growth
from leadline.whatif.selftime import SelfTimes

WIDE = [256, 256]
UPDATE_US = 3 * 4 * 256 * 256 * 0.1 / 1000  # two inputs and an output at 0.1 ns a byte


def shaped(step, name, us, shapes, phase=Phase.FORWARD, **more):
    task = step.cpu(name, us, phase, **more)
    step.details[task] = {"Input Dims": shapes, "Input type": ["float"] * len(shapes)}
    return task


@pytest.fixture
def calls(step):
    """Views of 1 us, nodes that call two operators and take 1 + 2 x 3 us themselves, and an update of a parameter."""
    for _ in range(6):
        step.cpu("aten::as_strided", 1, Phase.FORWARD)
        node = step.cpu("MulBackward0", 7, Phase.BACKWARD)
        for _ in range(2):
            step.cpu("aten::as_strided", 1, Phase.BACKWARD, parent=node)
    shaped(step, "aten::add_", UPDATE_US, [WIDE, WIDE], Phase.OPTIMIZER)
    return step


def growing_us(step):
    graph = step.graph()
    tasks = graph.select(kind=TaskKind.CPU) - graph.select(phase=Phase.OPTIMIZER)
    found = growth(graph, tasks, SelfTimes(graph), Draw())
    return dict(zip(tasks.ids.tolist(), (found.growing_ns / 1000).tolist(), strict=True)), found


def test_what_calls_cost_is_told_by_those_that_move_nothing(calls):
    cost = call_cost(calls.graph())
    assert (cost.leaf, cost.inner) == (1000, 3000)


def test_a_trace_with_too_few_of_them_does_not_tell(step):
    step.cpu("aten::view", 1)
    step.cpu("aten::mm", 100)
    cost = call_cost(step.graph())
    assert (cost.leaf, cost.inner) == (None, None)


def test_views_and_nodes_never_grow(calls):
    found, _ = growing_us(calls)
    assert set(found.values()) == {0.0}


def test_an_operator_pays_for_itself_and_for_what_it_calls(calls):
    """A call is taken to cost four views at most: 4 us, and 3 more for each of two operators inside."""
    alone = calls.cpu("aten::relu", 104, Phase.FORWARD)
    around = calls.cpu("aten::softmax", 110, Phase.FORWARD)
    for _ in range(2):
        calls.cpu("aten::as_strided", 1, Phase.FORWARD, parent=around)
    found, parts = growing_us(calls)
    assert parts.call_ns == 4000
    assert (found[alone], found[around]) == (100, 100)


@pytest.mark.parametrize(
    ("name", "phase", "grows"),
    [
        ("aten::add_", Phase.BACKWARD, False),  # autograd sums gradients of a weight that was used more than once
        ("aten::add", Phase.FORWARD, True),
        ("aten::threshold_backward", Phase.BACKWARD, True),
        ("aten::mul_", Phase.OTHER, False),  # gradients are clipped
        ("aten::zero_", Phase.FORWARD, False),
    ],
)
def test_what_goes_through_gradients_of_parameters_does_not_grow(calls, name, phase, grows):
    task = shaped(calls, name, 104, [WIDE, WIDE] if name != "aten::zero_" else [WIDE], phase)
    found, _ = growing_us(calls)
    assert found[task] == (100 if grows else 0)


def test_a_sum_of_other_tensors_grows(calls):
    task = shaped(calls, "aten::add_", 104, [[64, 256], [64, 256]], Phase.BACKWARD)
    found, _ = growing_us(calls)
    assert found[task] == 100


def test_weights_are_read_and_laid_out_once_for_any_batch(calls):
    """Two passes over 256 KiB at 0.1 ns a byte, of a product and of a convolution."""
    passes_us = 2 * 4 * 256 * 256 * 0.1 / 1000
    product = shaped(calls, "aten::mm", 1004, [[16, 256], WIDE])
    shaped(calls, "aten::add_", UPDATE_US, [[64, 256, 2, 2]] * 2, Phase.OPTIMIZER)
    convolution = shaped(calls, "aten::mkldnn_convolution", 1004, [[8, 256, 9, 9], [64, 256, 2, 2], [64]])
    found, _ = growing_us(calls)
    assert found[product] == pytest.approx(1000 - passes_us, rel=1e-4)
    assert found[convolution] == pytest.approx(1000 - passes_us, rel=1e-4)


def test_nothing_asked_is_nothing(calls):
    graph = calls.graph()
    assert growth(graph, Selection([]), SelfTimes(graph), Draw()).growing_ns.size == 0
