"""The workloads of the cost table: one step of decoding, of ResNet-50 and of a GPT, ready to run on the GPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from gpu_models import MODELS
from torch import nn


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
    """One step: `decode`, `resnet50` or `gpt`."""
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
