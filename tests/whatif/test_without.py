"""Operators and layers that are not in the model take along what exists because of them."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.whatif import Graph, GraphBuilder, GraphError, Phase, TaskKind, simulate, without
from leadline.whatif.kinds import LaneKind

US = 1000
ACCUMULATE = "torch::autograd::AccumulateGrad"
UPDATE_US = 40


def model(shared: bool = False) -> Graph:
    """Python 20 before each call; product 100 and norm 50, backward 200 and 70, sums of their gradients 10 each, and an
    update of 40 for each of two parameters of the norm and one of the product. `shared`: the norm's layer has another
    operator of 30 as well."""
    builder = GraphBuilder()
    main = builder.lane("main", LaneKind.THREAD)

    details: dict[int, dict[str, list[object]]] = {}

    def task(name: str, us: int, phase: Phase, layer: str = "", shape: list[int] | None = None) -> None:
        row = builder.task(name, TaskKind.CPU, main, us * US, phase=phase, layer=layer)
        if shape:
            details[row] = {"Input Dims": [shape], "Input type": ["float"]}

    def python() -> None:
        task("(python)", 20, Phase.FORWARD)

    python()
    task("aten::mm", 100, Phase.FORWARD, "Linear_0")
    python()
    task("aten::norm", 50, Phase.FORWARD, "Norm_0")
    if shared:
        task("aten::relu", 30, Phase.FORWARD, "Norm_0")
    task("NormBackward0", 70, Phase.BACKWARD, "Norm_0")
    for _ in range(2):
        task(ACCUMULATE, 10, Phase.BACKWARD, "Norm_0", [8])
    task("MmBackward0", 200, Phase.BACKWARD, "Linear_0")
    task(ACCUMULATE, 10, Phase.BACKWARD, "Linear_0", [8, 8])
    for shape in ([8], [8], [8, 8]):
        task("aten::add_", UPDATE_US, Phase.OPTIMIZER, "", shape)
    graph = builder.graph()
    graph.details = list(details.values())
    graph.tasks.write("detail")[list(details)] = np.arange(len(details))
    return graph


def step_us(graph: Graph) -> float:
    return simulate(graph).makespan_ns / US


@pytest.mark.parametrize("what", [{"name": "^aten::norm$"}, {"layer": "^Norm_0$"}])
def test_a_layer_goes_with_its_backward_work_and_its_parameters(what: dict[str, str]) -> None:
    graph = model()
    left = step_us(without(graph, **what))  # type: ignore[arg-type]
    assert step_us(graph) - left == 20 + 50 + 70 + 2 * 10 + 2 * UPDATE_US
    assert step_us(graph) == 610, "the graph itself stays"


def test_backward_work_of_a_layer_that_stays_in_part_stays() -> None:
    graph = model(shared=True)
    assert step_us(graph) - step_us(without(graph, name="^aten::norm$")) == 20 + 50
    assert step_us(graph) - step_us(without(graph, name="^(aten::norm|NormBackward0)$")) == 20 + 50 + 70


def test_nothing_that_matches_is_refused() -> None:
    with pytest.raises(GraphError, match="nothing in the trace matches"):
        without(model(), name="aten::lstm")
    with pytest.raises(GraphError, match="nothing in the trace matches"):
        without(model())
