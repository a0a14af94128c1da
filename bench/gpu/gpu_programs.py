"""The programs that the checks measure: each is run in a process of its own, measured by one tool or by none.

python -m gpu_programs PROGRAM TOOL OUTPUT     TOOL: none, leadline, torch
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from gpu_models import MODELS
from torch import nn


@contextlib.contextmanager
def measured(tool: str, output: str) -> Iterator[None]:
    """The body under Leadline, under torch.profiler (a Chrome trace at `output`), or under nothing."""
    if tool == "leadline":
        import leadline

        with leadline.profile(output, quiet=True):
            yield
    elif tool == "torch":
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities) as profiler:
            yield
        profiler.export_chrome_trace(output)
    else:
        yield


def train_small(steps: int = 20) -> None:
    """A convolutional net with every phase of training, copies from the host and a synchronising read."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10)).cuda()
    images, labels = torch.randn(64, 3, 32, 32).pin_memory(), torch.randint(0, 10, (64,))
    model(images.cuda())
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images.cuda(non_blocking=True)), labels.cuda())
        loss.backward()
        optimizer.step()
        loss.item()


def captured_graph() -> torch.cuda.CUDAGraph:
    """Two layers captured, with the lines of `first_layer` and `second_layer`."""
    value = torch.randn(256, 256, device="cuda")

    def first_layer() -> torch.Tensor:
        return value @ value

    def second_layer(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        second_layer(first_layer())
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        second_layer(first_layer())
    return graph


def replay(graph: torch.cuda.CUDAGraph, times: int = 10) -> None:
    for _ in range(times):
        graph.replay()
    torch.cuda.synchronize()


def nvtx_ranges() -> None:
    value = torch.randn(512, 512, device="cuda")
    for _ in range(5):
        with torch.cuda.nvtx.range("outer"), torch.cuda.nvtx.range("inner"):
            value = torch.relu(value @ value)
    handle = torch.cuda.nvtx.range_start("started")
    torch.relu(value)
    torch.cuda.nvtx.range_end(handle)
    torch.cuda.synchronize()


def many_streams() -> None:
    value = torch.randn(1024, 1024, device="cuda")
    streams = [torch.cuda.Stream() for _ in range(4)]
    torch.cuda.synchronize()
    for stream in streams:
        with torch.cuda.stream(stream):
            for _ in range(10):
                value @ value
    event = torch.cuda.Event()
    event.record(streams[0])
    streams[1].wait_event(event)
    event.synchronize()
    torch.cuda.synchronize()


def compiled() -> None:
    def fused(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) * 2 + torch.sigmoid(x)

    function = torch.compile(fused)
    value = torch.randn(1 << 20, device="cuda")
    for _ in range(5):
        function(value)
    torch.cuda.synchronize()


class DecoderLayer(nn.Module):
    """One token's attention over itself and a gated perceptron."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(hidden)).chunk(3, -1)
        weights = torch.softmax((q * k).sum(-1, keepdim=True), -1)
        hidden = hidden + self.out(weights * v)
        result: torch.Tensor = hidden + self.down(nn.functional.silu(self.up(self.norm(hidden))))
        return result


def decoder(layers: int = 16, width: int = 512) -> nn.Module:
    """Small layers in the manner of Llama (Touvron et al. 2023), one token at a time: bound by launches."""
    return nn.Sequential(*(DecoderLayer(width) for _ in range(layers)))


def workload(name: str) -> Callable[[], Any]:
    """One step of a workload of the cost table, ready to run on the GPU."""
    torch.manual_seed(0)
    if name == "decode":
        small = decoder().cuda().bfloat16().eval()
        token = torch.randn(1, 1, 512, device="cuda", dtype=torch.bfloat16)
        return torch.inference_mode()(lambda: small(token))
    chosen = MODELS["resnet50" if name == "resnet50" else "decoder"]
    model, batch = chosen.build().cuda(), chosen.batch(chosen.size)
    inputs, labels = [tensor.cuda() for tensor in batch.inputs], batch.labels.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = nn.functional.cross_entropy(model(*inputs), labels)
        loss.backward()
        optimizer.step()

    return step


def timed(step: Callable[[], Any], steps: int) -> float:
    """Seconds per step, the device's work included."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / steps


PROGRAMS: dict[str, Callable[[], Any]] = {
    "train": train_small,
    "nvtx": nvtx_ranges,
    "streams": many_streams,
    "compiled": compiled,
}


def main() -> None:
    program, tool, output = sys.argv[1:4]
    record: dict[str, Any] = {"program": program, "tool": tool, "pid": os.getpid()}
    if program == "graph":
        with measured(tool, output):
            replay(captured_graph())
    elif program == "late-graph":
        graph = captured_graph()
        with measured(tool, output):
            replay(graph)
    elif program in PROGRAMS:
        if program == "train":
            train_small(3)  # algorithm choice and first-use loading are over
            torch.cuda.synchronize()
        with measured(tool, output):
            PROGRAMS[program]()
            torch.cuda.synchronize()
    else:
        raise SystemExit(f"There is no program called {program}.")
    Path(output + ".json").write_text(json.dumps(record))


if __name__ == "__main__":
    main()
