"""The prompts never change, but a frozen encoder reads them in every step."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Encoder(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.layers = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(width, width), nn.ReLU())])

    def forward(self, x):
        return self.layers(x).mean(0)


def main():
    encoder = Encoder().requires_grad_(False)
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    prompts = torch.randn(256, 256)
    batches = torch.randn(30, 64, 256)
    for batch in batches:
        wanted = encoder(prompts)  # problem
        loss = (model(batch) - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
