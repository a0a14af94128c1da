"""A model only answers, but autograd keeps every layer's output for a backward pass that never comes."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Regressor(nn.Module):
    def __init__(self, width=256, layers=8):
        super().__init__()
        self.layers = nn.Sequential(*[layer for _ in range(layers) for layer in (nn.Linear(width, width), nn.GELU())])

    def forward(self, x):
        return self.layers(x).mean(1)


def main():
    model = Regressor().eval()
    total = 0.0
    for _ in range(30):
        answers = model(torch.randn(256, 256))  # problem
        total += answers.sum().item()
    print(total)


main()
