"""`batchnorm_restructuring`: batch norm split in two halves and fused with its neighbours (Jung et al., MLSys 2019).

Daydream 5.1: the activation kernels next to batch norm go away with their launches, batch-norm kernels take half.
"""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from leadline.whatif.draws import Draw, technique
from leadline.whatif.edits import calls_of
from leadline.whatif.graph import Graph
from leadline.whatif.kernels import KernelTable
from leadline.whatif.kinds import Phase, Selection, TaskKind
from leadline.whatif.layerwork import in_lane_order
from leadline.whatif.scenarios.base import Applied, Scenario, Values, count

BATCH_NORM = re.compile(r"batch_?norm|cudnn::bn|(^|_)bn_(fw|bw)|spatialbn", re.IGNORECASE)
ACTIVATION = re.compile(r"relu|threshold|clamp_min|launch_clamp|silu|hardtanh|hardswish", re.IGNORECASE)


class BatchnormRestructuring(Scenario):
    """Halves batch-norm kernels and removes the activations beside them."""

    name = "batchnorm_restructuring"
    advice = "fuse batch norm with its neighbouring convolutions and activations"

    def applicable(self, graph: Graph, values: Values) -> str | None:
        return None if _batch_norms(graph) else "the trace has no batch-norm kernel on a GPU"

    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        norms = _batch_norms(graph)
        activations = _neighbours(graph, norms)
        factor = technique("batchnorm", larger_is_faster=True).at(draw)
        graph.scale(norms, 1 / factor)
        removed = activations
        if not draw.cautious("fused activations"):
            removed = activations | calls_of(graph, activations)
            graph.remove(removed)
        else:
            # a fused kernel may keep its host-side operator; then only the device time goes
            graph.scale(activations, 0.0)
        return Applied(
            graph,
            (
                f"batch-norm kernels take 1/{factor:g} of their time, since each half loads the input once less",
                "the activation after (in backward: before) each batch norm disappears into its neighbour",
                "in the high end of the range its launch stays",
            ),
            count(batch_norm_kernels=len(norms), activation_kernels=len(activations)),
        )


def _batch_norms(graph: Graph) -> Selection:
    kernels = KernelTable(graph).kernels
    names, operators = graph.column("name"), graph.column("operator")
    matches = _matching(graph, BATCH_NORM)
    return Selection(kernels.ids[matches[names[kernels.ids]] | matches[operators[kernels.ids]]])


def _matching(graph: Graph, pattern: re.Pattern[str]) -> NDArray[np.bool_]:
    """Which of the graph's names the pattern finds."""
    return np.array([pattern.search(text) is not None for text in graph.names], dtype=np.bool_)


def _neighbours(graph: Graph, norms: Selection) -> Selection:
    """Activation kernels directly after a batch-norm kernel on its stream, in the backward pass directly before it."""
    names, operators, lanes = graph.column("name"), graph.column("operator"), graph.column("lane")
    phase = graph.column("phase")
    matches = _matching(graph, ACTIVATION)
    is_norm = norms.mask(len(graph))
    activation = (matches[names] | matches[operators]) & ~is_norm
    found: list[int] = []
    for lane in sorted({int(lanes[task]) for task in norms}):
        ids = in_lane_order(graph, graph.select(kind=TaskKind.GPU, lane=lane)).tolist()
        for left, right in pairwise(ids):
            # forward the activation follows its norm, backward it comes before
            backward = phase[left] == Phase.BACKWARD
            task, other = (left, right) if backward else (right, left)
            if activation[task] and is_norm[other]:
                found.append(task)
    return Selection(found)
