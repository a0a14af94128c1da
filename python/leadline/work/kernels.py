"""What kind of work a kernel does and what bounds it, from its name: one table, the first row that matches decides.

Names differ by library and generation (`sgemm`, `xmma_fprop`, `nvjet_tst`, `cutlass::Kernel2`, `Cijk_`, `triton_poi`)
and mislead (`volta_sgemm` runs convolutions, `ncclDevComm` holds an `mm`, `fbgemm_gpu` a `gemm`), so where an operator
above a kernel has a class, that is the kernel's.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

from leadline.work.operators import class_of_operator


class KernelClass(Enum):
    """What limits a kernel: MATMUL, CONVOLUTION and ATTENTION compute, the others memory."""

    COLLECTIVE = "collective"
    COPY = "copy"
    OPTIMIZER = "optimizer"
    ATTENTION = "attention"
    NORMALISATION = "normalisation"
    CONVOLUTION = "convolution"
    MATMUL = "matmul"
    ELEMENTWISE = "elementwise"
    MOVEMENT = "data movement"
    REDUCTION = "reduction"
    OTHER = "other"


COMPUTE = (KernelClass.MATMUL, KernelClass.CONVOLUTION, KernelClass.ATTENTION)

_TABLE: tuple[tuple[str, KernelClass, str], ...] = (
    ("communication", KernelClass.COLLECTIVE, r"^nccl|rccl|all_?reduce_kernel|all_?gather_kernel|deepep"),
    ("copy", KernelClass.COPY, r"^mem(cpy|set)\b|^copybuffer"),
    ("matrix product", KernelClass.MATMUL, r"^triton_(mm|tem)"),
    ("fused", KernelClass.REDUCTION, r"^triton_(red|per)"),
    ("fused", KernelClass.ELEMENTWISE, r"^triton_(poi|for)"),
    ("fused", KernelClass.OTHER, r"^triton_"),
    ("copy", KernelClass.MOVEMENT, r"catarraybatched"),
    ("optimizer", KernelClass.OPTIMIZER, r"adam|multi_tensor_apply|fused_?sgd|foreach"),
    ("embedding", KernelClass.MOVEMENT,
     r"embedding|bucketize_sparse|permute_2d|permute_pooled|bounds_check_indices|linearize_(index|cache)"),
    ("attention", KernelClass.ATTENTION, r"flash|fmha|attention|mha_(fwd|bwd|varlen)|sdpa"),
    ("normalisation", KernelClass.NORMALISATION,
     r"batch_?norm|layer_?norm|group_?norm|rms_?norm|instance_?norm|cudnn::bn_|(^|_)bn_(fw|bw)|gammabeta|welford"),
    # layout changes around a convolution only move memory, whatever library they come from
    ("convolution", KernelClass.MOVEMENT, r"nchwtonhwc|nhwctonchw|^batched_transpose_"),
    ("convolution", KernelClass.ELEMENTWISE, r"^subtensorop"),
    ("copy", KernelClass.MOVEMENT, r"transpose|convert_?tensor"),
    ("convolution", KernelClass.CONVOLUTION,
     r"^(?!.*fbgemm).*(fprop|dgrad|wgrad|scudnn|implicit|winograd|conv(?!ert)|fft2d|cudnn_.*engine|gridwise|igemm)"),
    ("matrix product", KernelClass.MATMUL,
     r"^(?!.*fbgemm).*(gemm|gemv|nvjet|cutlass|cublas|cijk_|matmul|splitk|wgmma|bmm|dot_kernel|_mm_)"),
    ("softmax", KernelClass.REDUCTION, r"softmax|nll_loss"),
    ("pooling", KernelClass.MOVEMENT, r"max_pool|avg_pool|adaptive_average|atomic_adaptive"),
    ("sort", KernelClass.REDUCTION, r"devicescan|radixsort|reducebykey|devicemergesort|uniquebykey|topk|cub::"),
    ("normalisation", KernelClass.REDUCTION, r"norm(?!al)"),
    ("element-wise", KernelClass.REDUCTION, r"reduce|arg(max|min)|scan|sort"),
    ("element-wise", KernelClass.MOVEMENT, r"index_elementwise|with_index|(^|_)pad|upsample|roll_|flip|pool"),
    ("embedding", KernelClass.MOVEMENT, r"index|gather|scatter"),
    ("element-wise", KernelClass.ELEMENTWISE,
     r"elementwise|vectorized|dropout|gelu|silu|relu|threshold|fill|copy|distribution|where|pointwise|optensor|scaletensor"),
)  # fmt: skip
_COMPILED = tuple((name, bound, re.compile(pattern)) for name, bound, pattern in _TABLE)
_OF_OPERATORS = {
    "convolution": KernelClass.CONVOLUTION, "matrix product": KernelClass.MATMUL, "attention": KernelClass.ATTENTION,
}  # fmt: skip


@lru_cache(maxsize=65536)
def _row(name: str) -> tuple[str, KernelClass]:
    plain = name.lower().removeprefix("void ")
    return next(
        ((found, bound) for found, bound, pattern in _COMPILED if pattern.search(plain)), ("unknown", KernelClass.OTHER)
    )


def class_of_kernel(name: str) -> str:
    """The class that a kernel's name tells, `unknown` where it tells none."""
    return _row(name)[0]


@lru_cache(maxsize=16384)
def classify(name: str, operator: str = "") -> KernelClass:
    """What limits a kernel by its name; one that tells nothing is judged by the operator that launched it."""
    found = _row(name)[1]
    if found is not KernelClass.OTHER or not operator:
        return found
    node = re.sub(r"backward\d*$", "", operator.rsplit(": ", 1)[-1].lower())  # autograd's, as in AddmmBackward0
    words = (class_of_operator(operator), class_of_operator(node))
    return next((_OF_OPERATORS[word] for word in words if word in _OF_OPERATORS), KernelClass.OTHER)
