"""`precision`: matrix kernels in tf32, bf16, fp16 or fp8, each bounded by its roofline; nothing else changes."""

from __future__ import annotations

from leadline.hardware.precision import PRECISION_BYTES
from leadline.whatif.draws import Draw
from leadline.whatif.graph import Graph
from leadline.whatif.kernels import KernelTable
from leadline.whatif.scenarios.base import Applied, Parameter, Scenario, ScenarioError, Values, count, gpu_of
from leadline.whatif.scenarios.lower_precision import scale_compute
from leadline.whatif.units import Unit
from leadline.work.kernels import COMPUTE

PRECISIONS = ("tf32", "bf16", "fp16", "fp8")


class Precision(Scenario):
    """Scales matrix, convolution and attention kernels to one precision."""

    name = "precision"
    advice = "let matrix kernels use a lower precision (torch.set_float32_matmul_precision, or a lower-precision layer)"
    parameters = (
        Parameter(
            "target",
            Unit.TEXT,
            "precision of matrix kernels; auto is tf32",
            "auto",
            ("auto", *PRECISIONS),
        ),
    )

    def title(self, values: Values) -> str:
        return self.name if values.text("target") == "auto" else f"{self.name} {values.text('target')}"

    def applicable(self, graph: Graph, values: Values) -> str | None:
        table = KernelTable(graph)
        compute = table.all(*COMPUTE)
        if not compute:
            return "the trace has no matrix, convolution or attention kernel on a GPU"
        try:
            target = _target(graph, values)
        except ScenarioError as error:
            return str(error).rstrip(".")
        size = PRECISION_BYTES[target]
        precisions = set(table.precisions(compute))
        if all(found is not None and (PRECISION_BYTES[found] < size or found == target) for found in precisions):
            return f"all matrix kernels already run in {target} or lower"
        return None

    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        target = _target(graph, values)
        table = KernelTable(graph)
        scaled = scale_compute(graph, table, table.all(*COMPUTE), target, gpu_of(graph), draw)
        assumptions = (*scaled.assumptions, "conversions of inputs are fused or as cheap as today")
        return Applied(graph, assumptions, count(matrix_kernels=scaled.changed), scaled.warnings)


def _target(graph: Graph, values: Values) -> str:
    gpu = gpu_of(graph)
    target = values.text("target")
    if target == "auto":
        if gpu is None:
            raise ScenarioError("the GPU is not in the factor files, so name a precision: --set target=bf16")
        if gpu.peak_flops("tf32") is None:
            raise ScenarioError(f"{gpu.name} has no tf32 units; see amp, or name a precision: --set target=fp16")
        return "tf32"
    if gpu is not None and gpu.peak_flops(target) is None:
        raise ScenarioError(f"{gpu.name} has no {target} units")
    return target
