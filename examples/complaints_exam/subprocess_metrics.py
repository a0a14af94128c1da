"""Asks the system for its load after every step."""

import os
import subprocess

import torch
from torch import nn

FIX = os.environ.get("FIX") == "1"


def system_load():
    if FIX:
        return os.getloadavg()[0]
    return float(subprocess.run(["cat", "/proc/loadavg"], capture_output=True, text=True).stdout.split()[0])


def train(steps=80):
    torch.manual_seed(0)
    model = nn.Linear(256, 256)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loads = []
    for _ in range(steps):
        loss = model(torch.randn(64, 256)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loads.append(system_load())
    print(len(loads))


train()
