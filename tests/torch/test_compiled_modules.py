"""A model that makes modules in its forward pass compiles under Leadline as it does alone: whole, and once."""

from __future__ import annotations

import pytest

import leadline

torch = pytest.importorskip("torch")


class Stack(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        for layer in self.layers[:2]:  # a list of its own, made anew in each call
            x = layer(x)
        return x


def test_a_slice_of_a_list_of_modules_breaks_no_graph_and_compiles_nothing_again(tmp_path) -> None:
    made = []

    def counting(graph, inputs):
        made.append(graph)
        return graph

    with leadline.profile(tmp_path / "p.leadline"):
        compiled = torch.compile(Stack(), backend=counting, fullgraph=True)
        for _ in range(3):
            compiled(torch.ones(2, 4))
    torch._dynamo.reset()
    assert len(made) == 1
