"""Writes what happened in a step to a log, as JSON."""

import json
import os
import tempfile
from pathlib import Path

import torch
from torch import nn

FIX = os.environ.get("FIX") == "1"


class Log:
    def __init__(self, path):
        self.path, self.rows = path, []
        self.file = path.open("w")

    def write(self, row):
        self.rows.append(row)
        if FIX:
            self.file.write(json.dumps(row) + "\n")
        else:
            with self.path.open("w") as file:
                json.dump(self.rows, file)


def train(steps=300):
    torch.manual_seed(0)
    model = nn.Linear(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    log = Log(Path(tempfile.mkdtemp()) / "log.json")
    for step in range(steps):
        loss = model(torch.randn(32, 64)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.write({"step": step, "loss": loss.item(), "weights": model.bias.tolist()})
    print(len(log.rows))


train()
