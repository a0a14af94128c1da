"""Backward operators stand below the forward operator they belong to, whoever runs them."""

from __future__ import annotations

import threading

import torch
from tests.torch.frames import names, operator, statements
from torch import nn
from torch.utils.checkpoint import checkpoint

import leadline


def lost(result, kind: str) -> int:
    return sum(loss.count for loss in result.losses if loss.kind.name.lower() == kind)


def below(result, backward: str, forward: str) -> None:
    """`backward` ran, and everywhere below `forward` with a `backward` phase between."""
    nodes = [node for node in result.tree.find(kind="operator", name=backward) if node.exclusive("call_time").count]
    assert nodes
    for node in nodes:
        path = [(step.kind, step.name) for step in node.path()]
        at = len(path) - 1 - path[::-1].index(("phase", "backward"))
        assert path[at - 1] == ("operator", forward)


def test_backward_has_the_forward_line_and_module(measure):
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sigmoid(self.body(x))

    net = Net()

    def run() -> None:
        net(torch.ones(2, 4)).sum().backward()

    result = measure(run)
    below(result, "SigmoidBackward0", "aten::sigmoid")
    below(result, "AddmmBackward0", "aten::addmm")
    node = next(iter(result.tree.find(kind="operator", name="SigmoidBackward0")))
    assert statements(node)[-1][1] == "forward"
    assert names(node, "module") == ["net"]
    node = next(iter(result.tree.find(kind="operator", name="AddmmBackward0")))
    assert names(node, "module") == ["net", "net.body"]
    assert names(node, "phase")[-1] == "backward"
    assert lost(result, "backward_without_forward") == 0


def test_backward_on_another_thread(measure):
    def run() -> None:
        loss = torch.sin(torch.ones(3, requires_grad=True)).sum()
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()

    result = measure(run)
    below(result, "SinBackward0", "aten::sin")
    assert names(next(iter(result.tree.find(kind="operator", name="SinBackward0"))), "thread") == ["main"]


def test_many_threads_forward_and_backward(measure):
    weights = [torch.ones(4, requires_grad=True) for _ in range(4)]
    functions = [torch.sin, torch.cos, torch.tan, torch.sigmoid]

    def work(index: int) -> None:
        for _ in range(20):
            functions[index](weights[index]).sum().backward()

    def run() -> None:
        threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    result = measure(run)
    for backward, forward in (("Sin", "sin"), ("Cos", "cos"), ("Tan", "tan"), ("Sigmoid", "sigmoid")):
        below(result, f"{backward}Backward0", f"aten::{forward}")
    assert lost(result, "backward_without_forward") == 0


def test_forward_before_measuring_is_counted_and_kept(measure):
    loss = torch.sin(torch.ones(3, requires_grad=True)).sum()
    result = measure(loss.backward)
    node = operator(result, "SinBackward0")
    assert names(node, "phase") == []
    assert statements(node)
    assert lost(result, "backward_without_forward") >= 2


def test_nodes_of_a_changed_view_belong_to_the_operator_that_changed_it(measure):
    """It makes several: the change, the copy of slices around it, and the view anew."""

    def run() -> None:
        x = torch.ones(4, 4, requires_grad=True)
        y = x * 2
        y.t()[torch.tensor([1, 2])] = torch.ones(4)
        y.narrow(0, 0, 2).mul_(3)
        (y.t() + 1).sum().backward()

    result = measure(run)
    assert lost(result, "backward_without_forward") == 0
    slices = [node for node in result.tree.find(kind="operator") if node.name == "torch::autograd::CopySlices"]
    assert slices
    for node in slices:
        path = [step.name for step in node.path()]
        assert path[path.index("backward") - 1] in ("aten::index_put_", "aten::mul_")


def test_forward_in_a_pause_is_counted_and_no_other_operators(measure):
    def run() -> None:
        x = torch.ones(3, requires_grad=True)
        y = torch.sin(x)
        leadline.pause()
        z = torch.cos(y)
        leadline.resume()
        torch.tan(z).sum().backward()

    result = measure(run)
    below(result, "SinBackward0", "aten::sin")
    below(result, "TanBackward0", "aten::tan")
    assert lost(result, "backward_without_forward") == 1
    assert names(operator(result, "CosBackward0"), "phase") == []


def test_double_backward(measure):
    def run() -> None:
        x = torch.full((3,), 0.5, requires_grad=True)
        (first,) = torch.autograd.grad(torch.sin(x).sum(), x, create_graph=True)
        first.sum().backward()

    result = measure(run)
    below(result, "SinBackward0", "aten::sin")
    # The first backward computed cos(x) * grad under SinBackward0; its own backward belongs there.
    nodes = [n for n in result.tree.find(kind="operator", name="CosBackward0") if n.exclusive("call_time").count]
    assert nodes
    for node in nodes:
        assert "SinBackward0" in names(node, "operator")
        assert names(node, "phase").count("backward") == 2
    assert lost(result, "backward_without_forward") == 0


class Doubled(torch.autograd.Function):
    """Has Python of its own in backward."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return torch.erf(gradient)


def test_custom_function(measure):
    def run() -> None:
        Doubled.apply(torch.ones(3, requires_grad=True)).sum().backward()

    result = measure(run)
    below(result, "DoubledBackward", "Doubled")
    erf = operator(result, "aten::erf")
    assert "DoubledBackward" in names(erf, "operator")
    assert statements(erf)[-1][1] == "backward"


def test_hooks_run_below_the_operator_that_calls_them(measure):
    def hook(gradient):
        return torch.erf(gradient)

    def run() -> None:
        x = torch.ones(3, requires_grad=True)
        y = torch.sin(x)
        y.register_hook(hook)
        y.sum().backward()

    result = measure(run)
    assert statements(operator(result, "aten::erf"))[-1][1] == "hook"


def test_a_hook_of_an_output_stands_with_the_backward_of_its_operator(measure):
    """The engine calls it before the backward operator begins."""

    def hook(gradient):
        with torch.profiler.record_function("in the hook"):
            return torch.erf(gradient)

    def run() -> None:
        for _ in range(2):
            y = torch.sin(torch.ones(3, requires_grad=True))
            y.register_hook(hook)
            (y * 2).sum().backward()

    result = measure(run)
    erf = operator(result, "aten::erf")
    assert erf.exclusive("call_time").count == 2
    path = names(erf, "operator", "phase", "region")
    assert path[path.index("aten::sin") :] == [
        "aten::sin",
        "backward",
        "autograd::engine::evaluate_function: SinBackward0",
        "in the hook",
        "aten::erf",
    ]
    below(result, "SinBackward0", "aten::sin")
    # Beside its hook, the backward operator stays inside the engine's range around it.
    backward = operator(result, "SinBackward0")
    assert names(backward, "operator")[-2:] == ["autograd::engine::evaluate_function: SinBackward0", "SinBackward0"]
    assert lost(result, "backward_without_forward") == 0


def test_tensor_shared_by_several_forwards(measure):
    def run() -> None:
        shared = torch.ones(3, requires_grad=True)
        (torch.sin(shared) + torch.cos(shared) + torch.sin(shared)).sum().backward()

    result = measure(run)
    below(result, "SinBackward0", "aten::sin")
    below(result, "CosBackward0", "aten::cos")
    total = sum(n.exclusive("call_time").count for n in result.tree.find(kind="operator", name="SinBackward0"))
    assert total == 2


def test_checkpoint_recomputation_is_marked(measure):
    for reentrant in (True, False):

        def run(reentrant: bool = reentrant) -> None:
            x = torch.ones(3, requires_grad=True)
            checkpoint(lambda value: torch.sigmoid(torch.sin(value)), x, use_reentrant=reentrant).sum().backward()

        result = measure(run)
        again = [
            node
            for node in result.tree.find(kind="operator", name="aten::sin")
            if "recompute" in names(node, "phase") and node.exclusive("call_time").count
        ]
        assert again, reentrant
        below(result, "SinBackward0", "aten::sin")
        for node in result.tree.find(kind="operator", name="SinBackward0"):
            # The old way differentiates what it recomputes; the new way keeps the graph of the first forward.
            assert ("recompute" in names(node, "phase")) == reentrant


def test_graph_used_twice(measure):
    def run() -> None:
        loss = torch.sin(torch.ones(3, requires_grad=True)).sum()
        loss.backward(retain_graph=True)
        loss.backward()

    result = measure(run)
    assert operator(result, "SinBackward0").exclusive("call_time").count == 2
    below(result, "SinBackward0", "aten::sin")


def test_graph_larger_than_the_first_ring(measure):
    length = 40_000

    def run() -> None:
        for _ in range(2):
            x = torch.ones(1, requires_grad=True)
            y = x
            for _ in range(length):
                y = y.neg()
            y.backward()

    result = measure(run, memory=False)
    counted = lost(result, "backward_without_forward")
    found = sum(n.exclusive("call_time").count for n in result.tree.find(kind="operator", name="NegBackward0"))
    assert found == 2 * length
    # Some of the first graph are lost and said so; the second finds all of its own.
    assert counted < length
