"""What names of kernels say of the hardware that they use: precision, and whether matrix units multiply."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from leadline.profiles.demangle import demangler

_PRECISIONS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (precision, re.compile(pattern, re.IGNORECASE))
    for precision, pattern in (
        ("fp8", r"e4m3|e5m2|fp8|qgmma|nvjet_qq|\bck::.*\b_BitInt\(8\)"),
        ("bf16", r"bf16|bfloat16|BFloat16|nvjet_tst|nvjet_ttt|_BBS_|_BSS_|\bck::.*<.*\bunsigned short,"),
        ("fp32", r"ffma|simt_sgemm|f32f32_f32f32|(?<!s1688)sgemm|scudnn|sgemv|\bck::.*\bfloat, float, float,"),
        ("tf32", r"tf32|s1688|nvjet_sst|nvjet_sss"),
        ("fp16", r"f16|fp16|_Float16|half|h884|s884|h1688|hmma|hgemm|nvjet_hsh|nvjet_hhh|_HHS_|_HSS_"),
        ("fp64", r"dgemm|f64|double"),
    )
)

_DTYPE_PRECISION = {
    "float": "fp32", "double": "fp64", "c10::Half": "fp16", "c10::BFloat16": "bf16", "float32": "fp32",
    "float16": "fp16", "bfloat16": "bf16", "c10::Float8_e4m3fn": "fp8", "c10::Float8_e5m2": "fp8",
    "c10::Float8_e4m3fnuz": "fp8", "c10::Float8_e5m2fnuz": "fp8",
}  # fmt: skip
ELEMENT_BYTES = {
    "float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2, "long int": 8, "long": 8, "int": 4, "bool": 1,
    "unsigned char": 1, "signed char": 1, "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1, "short": 2,
    "c10::Float8_e4m3fnuz": 1, "c10::Float8_e5m2fnuz": 1,
}  # fmt: skip
PRECISION_BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1}


def precision_of(name: str, dtypes: Sequence[str] = ()) -> str | None:
    """Precision in which a kernel computes: by its name, else by its first floating-point input; None if unknown."""
    named = _named_precision(name)
    if named is not None:
        return named
    return next((_DTYPE_PRECISION[dtype] for dtype in dtypes if dtype in _DTYPE_PRECISION), None)


@lru_cache(maxsize=4096)
def _named_precision(name: str) -> str | None:
    name = readable(name)
    return next((precision for precision, pattern in _PRECISIONS if pattern.search(name)), None)


def readable(name: str) -> str:
    """Traces that were not imported may have names of kernels as compilers write them."""
    return _demangler()(name) if name.startswith("_Z") else name


@lru_cache(maxsize=1)
def _demangler() -> Callable[[str], str]:
    return demangler()


FULL_PRECISION_PRODUCT = r"(^|[_:])(simt_)?sgemm|gemm_f32f32_f32f32_f32|^Cijk_[A-Za-z_]*_S_?B_"
"""cuBLAS, CUTLASS and Tensile (rocBLAS, hipBLASLt) say the types in their kernels' names; TF32 is `tf32` or `s1688`."""
PRODUCTS_OF_TF32 = re.compile(r"fmha_cutlass\w*_f32\w*_sm[89]\d")
"""CUTLASS's memory-efficient attention multiplies fp32 as three products in TF32 (`OpMultiplyAddFastF32`)."""
WITHOUT_MFMA = (
    r"^Cijk_(?!.*_MI\d)"
    r"|\bck::kernel_\w*(gemm|conv)\w*_dl(_|\b)|\bck::\w*Gridwise\w*(Gemm|Conv)\w*Dl(_|\b|Multiple)"
    r"|^gridwise_convolution_\w*gemm(?!.*xdlops)|^igemm_v4r1_\w*dynamic|^naive_conv_"
)
"""Tensile also says which matrix instruction a kernel uses (`MI16x16x16x1`); none where it has none. Composable Kernel
has kernels of dot products (`dl`) beside those of matrix units (`xdl`, `wmma`), and so has MIOpen (`xdlops`), with
naive ones for what it has nothing better for. Its Winograd kernels (`miopenSp3`) need fewer products: left alone."""
HAS_MFMA = re.compile(r"Instinct MI[1-9]\d\d|\bgfx9(08|0a|4\d|50)")
