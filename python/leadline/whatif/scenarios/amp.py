"""`amp`: automatic mixed precision: matrix work in bf16 or fp16, element-wise work on half the bytes, casts added.

model=roofline predicts each kernel from the ratio of two roofline bounds on this GPU; model=paper is Algorithm 2 of
Daydream literally (names with sgemm or scudnn divided by 3, every other GPU task by 2).
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from leadline.hardware.gpus import Gpu
from leadline.units import percent
from leadline.whatif.draws import Draw, Range, technique
from leadline.whatif.elementwise import bytes_of_kernels
from leadline.whatif.graph import Graph
from leadline.whatif.kernels import KernelTable
from leadline.whatif.kinds import Phase, Selection, TaskKind
from leadline.whatif.scenarios.autocast_casts import add_cast_calls
from leadline.whatif.scenarios.base import Applied, Parameter, Scenario, ScenarioError, Values, count, gpu_of
from leadline.whatif.scenarios.lower_precision import scale_compute, shortest_kernel_ns
from leadline.whatif.units import Unit
from leadline.work.kernels import COMPUTE, KernelClass

AUTOCAST_FP32 = re.compile(
    r"softmax|nll_loss|cross_entropy|layer_?norm|group_?norm|mse_loss|bce|kl_div|cumsum|cumprod|::(exp|log|pow|prod|sum|norm)\b",
    re.IGNORECASE,
)
"""Operators that autocast keeps in fp32 (PyTorch, "Autocast Op Reference")."""


class Amp(Scenario):
    """Shrinks kernels by precision; the optimizer, copies and collectives keep their time."""

    name = "amp"
    advice = "train in mixed precision (torch.autocast)"
    parameters = (
        Parameter(
            "dtype", Unit.TEXT, "low precision; auto is bf16 where the GPU has it", "auto", ("auto", "bf16", "fp16")
        ),
        Parameter("model", Unit.TEXT, "how to predict kernels", "roofline", ("roofline", "paper")),
    )

    def applicable(self, graph: Graph, values: Values) -> str | None:
        table = KernelTable(graph)
        if not table.kernels:
            return "the trace has no GPU kernel, and mixed precision is predicted for GPUs only"
        if values.text("model") == "paper":
            return None
        low = {"fp16", "bf16", "fp8"}
        compute = table.all(*COMPUTE)
        if compute and all(found in low for found in table.precisions(compute)):
            return "all matrix kernels already run in low precision"
        return None

    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        table = KernelTable(graph)
        if values.text("model") == "paper":
            return _as_in_the_paper(graph, table, draw)
        gpu = gpu_of(graph)
        target = values.text("dtype")
        if target == "auto":
            target = "bf16" if gpu is None or gpu.peak_flops("bf16") else "fp16"
        if gpu is not None and gpu.peak_flops(target) is None:
            raise ScenarioError(f"amp: {gpu.name} has no {target} matrix units; use --set dtype=fp16.")
        compute = scale_compute(graph, table, table.all(*COMPUTE), target, gpu, draw)
        light = _halved(graph, table)
        before = graph.column("duration_ns")[light.ids].copy()
        kept = _kept(graph, light, before, gpu, draw)
        least = shortest_kernel_ns(before, draw)
        graph.set_duration(light, np.rint(np.maximum(before / (1 + kept), least)).astype(np.int64))
        casts = technique("cast_kernels", larger_is_faster=False).at(draw)
        _add_casts(graph, table, casts)
        cast_calls = add_cast_calls(graph, table, draw)
        share = float((before * kept).sum() / before.sum()) if before.sum() else 0.0
        assumptions = (
            *compute.assumptions,
            f"element-wise, pooling and batch-norm kernels keep {percent(share)} of the saving from "
            "moving half the bytes: as much of it as they attain of the memory's bandwidth, where shapes are known",
            "losses, softmax and layer norm stay in fp32, and so do the optimizer and the collectives",
            f"casts add {percent(casts)} of the forward kernel time and {cast_calls}",
        )
        if target == "fp16":
            assumptions += ("the loss scaler's own kernels and its synchronisation are not counted",)
        return Applied(
            graph, assumptions, count(matrix_kernels=compute.changed, memory_kernels=len(light)), compute.warnings
        )


def _halved(graph: Graph, table: KernelTable) -> Selection:
    """Memory-bound kernels of forward and backward that would move half the bytes."""
    light = table.all(KernelClass.ELEMENTWISE, KernelClass.MOVEMENT, KernelClass.REDUCTION, KernelClass.NORMALISATION)
    light = light - graph.select(phase=(Phase.OPTIMIZER, Phase.ZERO_GRAD, Phase.DATA_LOADING))
    names, operators = graph.column("name"), graph.column("operator")

    keeps = np.array([AUTOCAST_FP32.search(text) is not None for text in graph.names], dtype=np.bool_)
    stays = keeps[names[light.ids]] | keeps[operators[light.ids]]
    low = ("fp16", "bf16", "fp8")
    light = Selection(light.ids[~stays])
    return Selection([task for task, found in zip(light, table.precisions(light), strict=True) if found not in low])


def _add_casts(graph: Graph, table: KernelTable, share: float) -> None:
    """Lengthens the matrix kernels of the forward pass by the casts in front of them."""
    forward = table.all(*COMPUTE) & graph.select(phase=(Phase.FORWARD, Phase.OTHER))
    if not forward or share == 0:
        return
    total = float(
        graph.column("duration_ns")[(table.kernels & graph.select(phase=(Phase.FORWARD, Phase.OTHER))).ids].sum()
    )
    own = graph.column("duration_ns")[forward.ids].astype(np.float64)
    if own.sum() > 0:
        graph.scale(forward, 1 + share * total / own.sum())


def _kept(
    graph: Graph, light: Selection, duration_ns: NDArray[np.int64], gpu: Gpu | None, draw: Draw
) -> NDArray[np.float64]:
    """What each kernel keeps of the saving: at most what it attains of the bandwidth, since what else limits it stays;
    of kernels without shapes what is usual. The hopeful end lets the smaller type shorten all of a kernel."""
    usual = technique("memory_low_precision", larger_is_faster=True)
    kept = np.full(len(light), usual.at(draw))
    if gpu is None or not len(light):
        return kept
    attained = bytes_of_kernels(graph)[light.ids] / gpu.memory_bytes_s * 1e9 / np.maximum(duration_ns, 1)
    for at in np.flatnonzero(attained > 0).tolist():
        most = min(float(attained[at]), 1.0)
        kept[at] = Range(usual.optimistic, most, most * usual.pessimistic, name=usual.name).at(draw)
    return kept


def _as_in_the_paper(graph: Graph, table: KernelTable, draw: Draw) -> Applied:
    matrix = technique("daydream_matmul", larger_is_faster=True).at(draw)
    other = technique("daydream_memory", larger_is_faster=True).at(draw)
    device = graph.select(kind=TaskKind.GPU)
    heavy = graph.select(kind=TaskKind.GPU, name=r"sgemm|scudnn")
    graph.scale(heavy, 1 / matrix)
    graph.scale(device - heavy, 1 / other)
    warnings = (
        () if heavy else ("no kernel is called sgemm or scudnn: the paper's rule fits Volta and Turing libraries",)
    )
    return Applied(
        graph,
        (f"kernels named sgemm or scudnn take 1/{matrix:g}, other GPU tasks 1/{other:g} of their time (Daydream)",),
        count(matrix_kernels=len(heavy), other_kernels=len(device) - len(heavy)),
        warnings,
    )
