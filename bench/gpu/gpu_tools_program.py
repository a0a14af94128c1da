"""What gpu_tools.py measures: passes of a model, from a graph too, or with a NaN in its weights. Drawn on the fakes.

    gpu_tools_program.py MODEL [infer|train|graph] [BATCH]

Prints {"seconds": ...} of a pass behind the first one, as JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time

DRAWN = """
context A
alloc weights context=A bytes=262144
alloc out context=A bytes=65536
kernel gemm
read weights count=1024 stride=256
write out count=256 {value}
module m context=A functions=gemm
"""
LAUNCHES = "launch gemm grid=8 block=128 times=8\nwait\n"
PASSES = 2


def drawn(model: str, mode: str) -> float:
    """Over the fake Compute Sanitizer, which runs nothing unless it is asked for."""
    path = os.environ.get("LEADLINE_SANITIZER_LIBRARY", "")
    if not path:
        return 0.0
    sanitizer = ctypes.CDLL(path)
    text = DRAWN.format(value="value=0x7fc00000" if model == "nan" else "")
    assert sanitizer.fake_sanitizer_play(text.encode()) == 0
    for _ in range(PASSES):
        before = time.perf_counter()
        for launch in ("launch gemm grid=8 block=128\nwait\n",) * 8 if mode == "one by one" else (LAUNCHES,):
            assert sanitizer.fake_sanitizer_play(launch.encode()) == 0
    return time.perf_counter() - before


def real(model: str, mode: str, size: int) -> float:
    """On the GPU; without one (to try this file) a tiny model on the CPU."""
    import torch
    from gpu_models import MODELS

    chosen, cuda = MODELS["encoder" if model == "nan" else model], torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    wait = torch.cuda.synchronize if cuda else int
    torch.manual_seed(0)
    net = (chosen.build if cuda else chosen.build_tiny)().to(device).train(mode == "train")
    if model == "nan":
        next(net.parameters()).data.view(-1)[0] = float("nan")
    batch = (chosen.batch if cuda else chosen.batch_tiny)(size)
    inputs, labels = tuple(one.to(device) for one in batch.inputs), batch.labels.to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)

    def one_pass() -> None:
        with torch.set_grad_enabled(mode == "train"):
            out = net(*inputs)
        if mode == "train":
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(out, labels).backward()
            optimizer.step()

    seconds = 0.0
    for turn in range(PASSES):
        wait()
        before = time.perf_counter()
        if mode == "graph" and turn > 0:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                one_pass()
            graph.replay()
        else:
            one_pass()
        wait()
        seconds = time.perf_counter() - before
    return seconds


if __name__ == "__main__":
    model, mode, size = (*sys.argv[1:], *("infer", "16")[len(sys.argv) - 2 :])
    fakes = bool(os.environ.get("LEADLINE_BENCH_FAKES"))
    print(json.dumps({"seconds": drawn(model, mode) if fakes else real(model, mode, int(size))}))
