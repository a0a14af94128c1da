"""Evaluation runs without gradients."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


def evaluate(model, data):
    with torch.no_grad():
        return model(data).square().mean().item()


def main():
    model = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(256, 256), nn.ReLU())])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch, held_out = torch.randn(16, 256), torch.randn(2048, 256)
    for _ in range(10):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        evaluate(model, held_out)


main()
