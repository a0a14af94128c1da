"""What a kernel computes, in words: `matrix product, bf16, 128x64, CUTLASS`. The raw name says the rest."""

from __future__ import annotations

import re
from functools import lru_cache

from leadline.names import bare
from leadline.work.kernels import class_of_kernel

_LIBRARIES: tuple[tuple[str, str], ...] = tuple(
    (library, pattern)
    for library, pattern in (
        ("NCCL", r"^nccl|^void nccl"),
        ("RCCL", r"rccl"),
        ("Inductor", r"^triton_(?:poi|red|per|for|tem|mm)"),
        ("Tensile", r"^Cijk_"),
        ("CK", r"\bck::|ck_tile::|^_ZN2ck|_xdl_|^kernel_gemm"),
        ("cuDNN", r"cudnn|_fprop_|_dgrad_|_wgrad_|dgrad_engine|wgrad_alg|scudnn|\bbn_(?:fw|bw)"),
        ("FlashAttention", r"flash_(?:fwd|bwd)|flash::|pytorch_flash"),
        ("CUTLASS", r"cutlass"),
        ("cuBLAS", r"nvjet|xmma_gemm|(?:ampere|volta|turing|hopper|maxwell|sm\d+)_.*gemm|cublas|gemmSN|splitK"),
        ("MIOpen", r"miopen|^Sp3AsmConv|igemm_\w+_gtcx"),
    )
)
_TYPES: tuple[tuple[str, str], ...] = (
    ("fp8", r"e4m3|e5m2|fp8|_qq"),
    ("bf16", r"bf16|bfloat16|BFloat16|(?<=_)BBS_|s16816gemm_bf16"),
    ("fp16", r"fp16|f16f16|_h(?:16816|1688|884|gemm)|__half|c10::Half|(?<=_)HHS_|hgemm|\bhalf\b"),
    ("tf32", r"tf32|tensorop_s1688|_s1688gemm(?!_fp16)"),
    ("int8", r"int8|i16832|s8"),
    ("fp64", r"(?<![A-Za-z])double(?![A-Za-z])|dgemm|f64f64|(?<=_)DB_"),
    ("fp32", r"(?<![A-Za-z])float(?![A-Za-z0-9])|sgemm|f32f32|fp32|(?<=_)SB_|_f32_"),
)
_TILE = re.compile(r"(?:tilesize|MT|_|^)(\d{2,3}x\d{2,3}(?:x\d{1,3})?)(?=_|$|x)")
_DIRECTION = (("backward, weights", r"wgrad|_wrw_|bwd_weight"), ("backward, input", r"dgrad|bwd_data|igemm_bwd"),
              ("forward", r"fprop|_fwd|fw_"),
              ("backward", r"_bwd|bw_|backward|Backward"))  # fmt: skip
_COLLECTIVE = re.compile(
    r"(AllReduce|AllGather|ReduceScatter|AllToAll|Broadcast|SendRecv|Reduce)(?:_(Sum|Max|Min|Prod|PreMulSum))?"
)
_FUSED = re.compile(r"^triton_(poi|red|per|for|tem|mm)_fused_(.+?)_?(\d+)$")
_FUNCTOR = re.compile(
    r"CUDAFunctor(?:On(?:Self|Other))?_(\w+)|(\w+?)(?:Functor|Op)\b|::(\w+?)_kernel(?:_cuda|_impl)?\(|(\w+)_kernel_cuda"
)
_VAGUE = {"elementwise", "vectorized_elementwise", "unrolled_elementwise", "Binary", "Unary", "BinaryInternal", "Func",
          "gpu", "AUnary", "BUnary", "Reduce", "reduce", "TrivialOffsetCalculator", ""}  # fmt: skip


@lru_cache(maxsize=65536)
def kernel_words(name: str) -> str:
    """What it computes, its type, its tile and whose it is, as far as the name tells; else the bare name."""
    if not name or re.match(r"^(?:Memcpy|Memset|mem(?:cpy|set))", name):
        return name
    library = next((word for word, pattern in _LIBRARIES if re.search(pattern, name)), "")
    if library in ("NCCL", "RCCL") and (found := _COLLECTIVE.search(name)):
        what = re.sub(r"(?<!^)([A-Z])", lambda letter: "-" + letter[1].lower(), found[1]).lower()
        return ", ".join(filter(None, (what.replace("--", "-"), (found[2] or "").lower(), _type(name), library)))
    if fused := _FUSED.match(name):
        kind = {"red": "fused reduction", "per": "fused reduction"}.get(fused[1], "fused")
        parts = [part for part in fused[2].split("_") if part]
        return f"{kind}: {' '.join(parts[:8])}{' …' if len(parts) > 8 else ''}, {library}"
    kind = class_of_kernel(name)
    what = {"unknown": "", "element-wise": ""}.get(kind, kind)
    if kind in ("convolution", "attention", "normalisation"):
        direction = next((word for word, pattern in _DIRECTION if re.search(pattern, name)), "")
        what = f"{what} {direction}".strip()
    if not what:
        does = next((part for match in _FUNCTOR.findall(name) for part in match if part and part not in _VAGUE), "")
        if not does:
            return bare(name)
        return ", ".join(filter(None, (f"element-wise {does}", _type(name))))
    if not library:  # somebody's own: its name tells more than its class
        return bare(name)
    return ", ".join(filter(None, (what, _type(name), _tile(name), library)))


def _type(name: str) -> str:
    return next((word for word, pattern in _TYPES if re.search(pattern, name)), "")


def _tile(name: str) -> str:
    found = _TILE.search(name)
    return found[1] if found else ""
