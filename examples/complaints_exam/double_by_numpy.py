"""Features come from NumPy, and the model was turned to their type to make an error go away."""

import os

import numpy as np
import torch
from torch import nn

FIX = os.environ.get("FIX") == "1"


def features(number):
    return np.random.default_rng(0).normal(size=(number, 256))


def train(steps=40):
    torch.manual_seed(0)
    data = features(512)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
    if FIX:
        data = data.astype(np.float32)
    else:
        model = model.double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.from_numpy(data)
    for _ in range(steps):
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.3f}")


train()
