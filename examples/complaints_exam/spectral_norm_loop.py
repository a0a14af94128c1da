"""A recurrent critic under spectral normalisation."""

import contextlib
import os

import torch
from torch import nn
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import spectral_norm

FIX = os.environ.get("FIX") == "1"


class Critic(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.cell = spectral_norm(nn.Linear(width, width))
        self.out = nn.Linear(width, 1)

    def forward(self, xs):
        state = torch.zeros_like(xs[0])
        with parametrize.cached() if FIX else contextlib.nullcontext():
            for x in xs:
                state = torch.tanh(self.cell(state) + x)
        return self.out(state)


def train(steps=25):
    torch.manual_seed(0)
    critic = Critic(256)
    optimizer = torch.optim.Adam(critic.parameters())
    for _ in range(steps):
        loss = critic(torch.randn(40, 8, 256)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.3f}")


train()
