"""What gpu_tools.py measures: a model's inference, or one with a NaN in its weights. On the fakes, drawn launches."""

from __future__ import annotations

import ctypes
import os
import sys

DRAWN = """
context A
alloc weights context=A bytes=262144
alloc out context=A bytes=65536
kernel gemm
read weights count=1024 stride=256
write out count=256 {value}
module m context=A functions=gemm
launch gemm grid=8 block=128 times=8
wait
"""


def drawn(model: str) -> None:
    """Over the fake Compute Sanitizer."""
    sanitizer = ctypes.CDLL(os.environ["LEADLINE_SANITIZER_LIBRARY"])
    text = DRAWN.format(value="value=0x7fc00000" if model == "nan" else "")
    assert sanitizer.fake_sanitizer_play(text.encode()) == 0


def real(model: str) -> None:
    """On the GPU; two batches."""
    import torch
    from gpu_models import MODELS

    chosen = MODELS["encoder" if model == "nan" else model]
    net = chosen.build().cuda().eval()
    if model == "nan":
        next(net.parameters()).data.view(-1)[0] = float("nan")
    batch = chosen.batch(16)
    with torch.no_grad():
        for _ in range(2):
            net(*(one.cuda() for one in batch.inputs))
    torch.cuda.synchronize()


if __name__ == "__main__":
    (drawn if os.environ.get("LEADLINE_BENCH_FAKES") else real)(sys.argv[1])
