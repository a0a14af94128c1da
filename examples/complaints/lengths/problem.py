"""Every new length of a sequence compiles the model again."""

import torch
from torch import nn

torch.set_num_threads(1)
torch._dynamo.config.automatic_dynamic_shapes = False
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))


@torch.compile(backend="eager")
def loss_of(x):
    return model(x).square().mean()


def main():
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for length in (33, 47, 52, 61, 70, 83, 90):
        optimizer.zero_grad()
        loss_of(torch.randn(length, 16)).backward()  # problem
        optimizer.step()


main()
