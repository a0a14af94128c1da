"""Activations are kept for the backward pass."""

import torch
from torch import nn

torch.set_num_threads(1)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(128), nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128)) for _ in range(6)
        )
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


def main():
    model = Network()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    for _ in range(20):
        inputs, labels = torch.randn(64, 128), torch.randint(0, 10, (64,))
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
