"""Classes of operators and kernels by name, the same for PyTorch and JAX, NVIDIA and AMD; the first rule that matches
decides."""

from __future__ import annotations

import re

_RULES: tuple[tuple[str, str], ...] = (
    ("communication", r"nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|broadcast_|all_?to_?all|c10d|gloo"),
    ("attention", r"attention|flash|fmha|sdpa"),
    ("convolution", r"conv(?!ert)|winograd|implicit_gemm|miopen"),
    (
        "matrix product",
        r"(^|[^a-z])(add|b|ba)?[bm]?mm(_|$|\b)|matmul|gemm|gemv|linear|dot_gen|cutlass|cijk_|einsum",
    ),
    ("normalisation", r"norm(?!al)"),
    ("softmax and loss", r"softmax|loss|cross_entropy|nll"),
    ("index and embedding", r"index|embedding|gather|scatter|take|nonzero|slice|narrow|select|where"),
    ("copy and layout", r"copy|_to_|::to$|contiguous|transpose|permute|memcpy|convert|cat|stack|clone|nchw|nhwc|pad"),
    ("reduction", r"reduce|sum|mean|max|min|argm|cumsum|var|std|prod"),
    ("random", r"dropout|bernoulli|rand|philox|normal_|uniform_|multinomial"),
    ("optimiser", r"adam|sgd|_foreach|multi_tensor|addcdiv|addcmul|lerp"),
    ("elementwise", r"add|sub|mul|div|relu|gelu|silu|sigmoid|tanh|exp|pow|sqrt|elementwise|fused|loop_|neg|clamp|erf"),
    ("create and fill", r"empty|zero|ones|fill|arange|full|memset|set_"),
    ("view", r"view|reshape|squeeze|expand|detach|alias|as_strided|(^|::)t$|split|chunk|unfold"),
)
_COMPILED = tuple((name, re.compile(pattern)) for name, pattern in _RULES)


def class_of(name: str) -> str:
    """The class of an operator or kernel; `other` where no rule knows it."""
    lowered = name.lower()
    return next((kind for kind, pattern in _COMPILED if pattern.search(lowered)), "other")
