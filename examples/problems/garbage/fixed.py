"""Reference counting frees what a step leaves; the collector runs once, at the end."""

import gc

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


def main():
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    vocabulary = {f"word {number}": [number] for number in range(200_000)}
    x, y = torch.randn(128, 256), torch.randint(0, 10, (128,))
    for _ in range(20):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    gc.collect()
    print(len(vocabulary), loss.item())


main()
