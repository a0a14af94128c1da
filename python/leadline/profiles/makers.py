"""Words that makers of devices have for the same things: sentences are written in NVIDIA's and turned into AMD's."""

from __future__ import annotations

import re

_AMDS = tuple(
    (re.compile(pattern), word)
    for pattern, word in (
        (r"\bCUDA (graph|stream|kernel)", r"HIP \1"),
        (r"\bstreaming multiprocessor", "compute unit"),
        (r"\bmultiprocessor", "compute unit"),
        (r"\bMultiprocessor", "Compute unit"),
        (r"\bSMs\b", "CUs"),
        (r"\bwarp(?=s?\b)(?!s of 32)", "wavefront"),
        (r"\bWarp(?=s?\b)", "Wavefront"),
        (r"\btensor core(?=s?\b)", "matrix core"),
        (r"\b[Ss]hared memory\b", "LDS"),
        (r"\bNCCL\b", "RCCL"),
    )
)
"""As whole words, so that names of kernels (`softmax_warp_forward`) stay."""


def in_amds_words(text: str) -> str:
    """The same sentence as AMD's documents would put it."""
    for pattern, word in _AMDS:
        text = pattern.sub(word, text)
    return text
