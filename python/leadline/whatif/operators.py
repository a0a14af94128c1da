"""Work of the operator around a task, from the shapes in the trace."""

from __future__ import annotations

import re
from typing import Any

from leadline.hardware.roofline import Work, convolution_output, convolution_work, work_of
from leadline.whatif.graph import Graph
from leadline.whatif.reading import shapes_in

_NUMBERS = re.compile(r"-?\d+")


def work_of_operator(graph: Graph, operator: int) -> Work | None:
    """Work of an operator with shapes, or of the nearest one around it whose shapes tell; None when none does.

    operator: a task as `graph.shaped_operators` finds it, -1 for none.
    """
    parent, names = graph.column("parent"), graph.column("name")
    at = operator
    while at >= 0:
        name = graph.names[names[at]]
        shapes = shapes_in(graph.detail(at))
        work = _convolution(graph, at, name, shapes) if "conv" in name else work_of(name, shapes)
        if work is not None:
            return work
        at = int(parent[at])
    return None


def _convolution(graph: Graph, operator: int, name: str, shapes: list[Any]) -> Work | None:
    """One kernel of a convolution: the forward pass, or one half of the backward pass (equal work)."""
    short = name.rsplit("::", 1)[-1]
    if "backward" in short:
        if len(shapes) >= 3 and all(isinstance(shape, list) and len(shape) > 2 for shape in shapes[:3]):
            return convolution_work(shapes[1], shapes[2], shapes[0])
        return None
    if len(shapes) < 2 or len(shapes[0]) < 3 or len(shapes[1]) < 3:
        return None
    detail = graph.detail(operator)
    concrete = detail.get("Concrete Inputs", detail.get("Concrete Args", []))
    first = {"conv2d": 3, "conv1d": 3, "conv3d": 3, "convolution": 3, "_convolution": 3}.get(short)
    if first is None or not isinstance(concrete, list) or len(concrete) < first + 3:
        return None
    stride, padding, dilation = (
        [int(text) for text in _NUMBERS.findall(str(concrete[first + offset]))] for offset in range(3)
    )
    if not (stride and padding and dilation):
        return None
    return convolution_work(shapes[0], shapes[1], convolution_output(shapes[0], shapes[1], stride, padding, dilation))
