"""`without`: a graph as it would be if some operators or layers were not in the model.

What exists because of them goes as well: their backward work, the sums of their parameters' gradients, these
parameters' part of the weight update, and the Python that leads to each call.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from leadline.whatif.edits import previous_on_lane
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import BoolArray, GraphError, Phase, Selection
from leadline.whatif.model import ACCUMULATE
from leadline.whatif.selftime import PYTHON

Shape = tuple[int, ...]
_NEARLY = 0.9  # of a layer's forward time


def without(
    graph: Graph, *, name: str | re.Pattern[str] | None = None, layer: str | re.Pattern[str] | None = None
) -> Graph:
    """A copy of the graph without the operators whose name, or the layers whose name, match a pattern.

    Backward work follows its forward operator where nearly all of a layer goes; that of a layer which keeps other
    operators stays unless `name` matches it. Raises GraphError where nothing matches.
    """
    edited = graph.copy()
    gone = edited.subtree(edited.select(name=name, layer=layer)) if name or layer else Selection([])
    if not gone:
        raise GraphError("nothing in the trace matches what is to be taken out; see the names with --critical-path")
    gone = gone | edited.subtree(_rest_of_layers(edited, gone))
    _shrink_update(edited, gone)
    edited.remove(gone | _python_before(edited, gone))
    return edited


def _rest_of_layers(graph: Graph, gone: Selection) -> Selection:
    """All of the layers whose forward work goes nearly as a whole; what a batch norm counts beside it is not the rest
    of a layer."""
    layer, phase = graph.column("layer"), graph.column("phase")
    forward = graph.alive & (phase == Phase.FORWARD) & ~_python(graph)
    spent = np.where(forward, graph.column("duration_ns") + np.maximum(graph.column("gap_ns"), 0), 0)
    leaves = gone.mask(len(graph))
    count = len(graph.layers)
    total, less = (np.bincount(layer, spent * part, minlength=count) for part in (np.ones(len(graph)), leaves))
    whole = (less > 0) & (less >= _NEARLY * total)
    whole[0] = False  # of no layer
    trained = (phase == Phase.FORWARD) | (phase == Phase.BACKWARD)
    return Selection(graph.alive & trained & whole[layer])


def _python(graph: Graph) -> BoolArray:
    found = graph.column("name") == (graph.names.index(PYTHON) if PYTHON in graph.names else -1)
    return np.asarray(found, dtype=np.bool_)


def _python_before(graph: Graph, gone: Selection) -> Selection:
    """The Python in front of what goes: it enters the modules and collects the arguments of the call behind it."""
    previous = previous_on_lane(graph)[gone.ids]
    previous = previous[previous >= 0]
    return Selection(previous[_python(graph)[previous]])


def _shrink_update(graph: Graph, gone: Selection) -> None:
    """Take the parameters whose gradients are no longer summed out of the weight update: of operators on one tensor as
    many as there are fewer tensors of that shape, of operators on lists the share of elements."""
    sums = graph.select(name=ACCUMULATE)
    before, fewer = (_tensors(graph, part) for part in (sums, sums & gone))
    if not fewer:
        return
    elements, less = (sum(count * int(np.prod(shape)) for shape, count in part.items()) for part in (before, fewer))
    update = graph.select(phase=Phase.OPTIMIZER)
    python = _python(graph)
    factors = np.ones(len(update))
    for at, task in enumerate(update):
        if python[task]:
            factors[at] = 1 - sum(fewer.values()) / sum(before.values())
            continue
        shapes = graph.shapes(task) if graph.detail(task) else []
        first = shapes[0] if shapes and isinstance(shapes[0], list) else []
        if first and isinstance(first[0], list):
            factors[at] = 1 - less / max(elements, 1)
        elif first and tuple(first) in fewer:
            factors[at] = 1 - fewer[tuple(first)] / before[tuple(first)]
    changed = factors != 1.0
    graph.scale(Selection(update.ids[changed]), factors[changed], gaps=True)


def _tensors(graph: Graph, sums: Selection) -> Counter[Shape]:
    """How many gradients of each shape are summed: by the shapes of the mark, else of the first operator inside."""
    inside: dict[int, Shape] = {}
    parent = graph.column("parent")
    marks = sums.mask(len(graph))
    shaped = graph.shaped_operators() == np.arange(len(graph))
    for task in np.flatnonzero(shaped & (marks | (marks[parent] & (parent >= 0)))).tolist():
        shapes = graph.shapes(task)
        if shapes and isinstance(shapes[0], list) and all(isinstance(axis, int) for axis in shapes[0]):
            inside.setdefault(task if marks[task] else int(parent[task]), tuple(shapes[0]))
    return Counter(inside.values())
