"""A Jacobian is computed row by row."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


def jacobian(outputs, inputs):
    rows = []
    for place in range(outputs.shape[1]):
        rows.append(torch.autograd.grad(outputs[:, place].sum(), inputs, retain_graph=True)[0])  # problem
    return torch.stack(rows, dim=1)


def main():
    model = nn.Sequential(nn.Linear(24, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 24))
    total = 0.0
    for _ in range(20):
        inputs = torch.randn(64, 24, requires_grad=True)
        total += jacobian(model(inputs), inputs).square().mean().item()
    print(total)


main()
