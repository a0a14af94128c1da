"""Keeps an average of the weights by copying the model."""

import copy
import os

import torch
from torch import nn

FIX = os.environ.get("FIX") == "1"


def average(model, mean):
    if FIX:
        with torch.no_grad():
            torch._foreach_lerp_(list(mean.parameters()), list(model.parameters()), 0.01)
        return mean
    made = copy.deepcopy(model)
    for new, old in zip(made.parameters(), mean.parameters(), strict=True):
        new.data = old.data * 0.99 + new.data * 0.01
    return made


def train(steps=60):
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.ReLU()) for _ in range(24)))
    mean = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        loss = model(torch.randn(32, 64)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = average(model, mean)
    print(f"{loss.item():.3f}")


train()
