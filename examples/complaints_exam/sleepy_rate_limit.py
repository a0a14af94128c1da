"""Trains and reports to a server, which a client of ours asks politely not to be hurried."""

import os
import time

import torch
from torch import nn

FIX = os.environ.get("FIX") == "1"


class Reporter:
    def __init__(self):
        self.sent = 0

    def report(self, value):
        self.sent += 1
        if not FIX or self.sent % 20 == 0:
            time.sleep(0.02)


def train(steps=120):
    torch.manual_seed(0)
    model = nn.Linear(256, 256)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    reporter = Reporter()
    for _ in range(steps):
        x = torch.randn(64, 256)
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        reporter.report(loss.detach())
    print(reporter.sent)


train()
