"""Keeps all losses and smooths over them for the progress line."""

import os

import torch
from torch import nn

FIX = os.environ.get("FIX") == "1"


class Progress:
    def __init__(self):
        self.values, self.smooth = [], 0.0

    def update(self, value):
        self.values.append(value)
        if FIX:
            self.smooth = 0.98 * self.smooth + 0.02 * value
            return
        weight, total, norm = 1.0, 0.0, 0.0
        for one in reversed(self.values):
            total, norm, weight = total + weight * one, norm + weight, weight * 0.98
        self.smooth = total / norm


def train(steps=2500):
    torch.manual_seed(0)
    model = nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    progress = Progress()
    for _ in range(steps):
        x = torch.randn(32, 16)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        progress.update(loss.item())
    print(f"{progress.smooth:.3f}")


train()
