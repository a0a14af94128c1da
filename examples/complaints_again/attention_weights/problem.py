"""Attention returns its weights, which nobody looks at."""

import torch
from torch import nn

torch.set_num_threads(1)


class Layer(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 8, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Sequential(nn.Linear(width, 128), nn.GELU(), nn.Linear(128, width))

    def forward(self, x):
        seen, _ = self.attention(x, x, x)  # problem
        x = self.norm(x + seen)
        return x + self.wide(x)


def main():
    model = nn.Sequential(Layer(), Layer(), nn.Linear(64, 4))
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    for _ in range(12):
        scene, target = torch.randn(4, 300, 64), torch.randn(4, 300, 4)
        loss = nn.functional.l1_loss(model(scene), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
