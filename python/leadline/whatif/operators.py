"""Work of the operator around a task, from the shapes in the trace."""

from __future__ import annotations

import re
from typing import Any

from leadline.whatif.graph import Graph
from leadline.whatif.roofline import Work, convolution_output, convolution_work, work_of

_NUMBERS = re.compile(r"-?\d+")


def shaped_operator(graph: Graph, task: int) -> int:
    """The innermost operator around the task (for device work: around its launch) that has shapes; -1 for none."""
    at = task
    while at >= 0:
        if "Input Dims" in graph.detail(at):
            return at
        at = int(graph.column("parent")[at])
    return -1


def work_of_task(graph: Graph, task: int) -> Work | None:
    """Work of the operator that launched the task; None when its shapes do not tell."""
    at = shaped_operator(graph, task)
    while at >= 0:
        name = graph.names[graph.column("name")[at]]
        shapes = graph.shapes(at)
        work = _convolution(graph, at, name, shapes) if "conv" in name else work_of(name, shapes)
        if work is not None:
            return work
        at = int(graph.column("parent")[at])
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
    concrete = list(graph.detail(operator).get("Concrete Inputs", graph.detail(operator).get("Concrete Args", [])))
    first = {"conv2d": 3, "conv1d": 3, "conv3d": 3, "convolution": 3, "_convolution": 3}.get(short)
    if first is None or len(concrete) < first + 3:
        return None
    stride, padding, dilation = (
        [int(text) for text in _NUMBERS.findall(str(concrete[first + offset]))] for offset in range(3)
    )
    if not (stride and padding and dilation):
        return None
    return convolution_work(shapes[0], shapes[1], convolution_output(shapes[0], shapes[1], stride, padding, dilation))
