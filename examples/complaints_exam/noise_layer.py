"""Adds noise to the activations of each layer while training."""

import os

import torch
from torch import nn

FIX = os.environ.get("FIX") == "1"


class Noisy(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.register_buffer("kept", torch.randn(512, width))

    def forward(self, x):
        noise = self.kept if FIX else torch.randn(x.shape)
        return torch.relu(self.linear(x)) + 0.1 * noise


def train(steps=60):
    torch.manual_seed(0)
    model = nn.Sequential(*(Noisy(128) for _ in range(6)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(512, 128)
    for _ in range(steps):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.3f}")


train()
