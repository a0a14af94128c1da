"""The cache of keys is joined anew for every token."""

import torch
from torch import nn

torch.set_num_threads(1)


class Attention(nn.Module):
    def __init__(self, width=256, longest=400):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.keys = torch.empty(4, 0, width)

    def forward(self, x, at):
        q, k, v = self.qkv(x).chunk(3, -1)
        self.keys = torch.cat([self.keys, k], dim=1)  # problem
        keys = self.keys
        return x + (q @ keys.transpose(1, 2)).softmax(-1) @ keys + 0 * v


def main():
    layer = Attention()
    x = torch.randn(4, 1, 256)
    with torch.no_grad():
        for at in range(400):
            x = layer(x, at).tanh()


main()
