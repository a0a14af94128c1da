"""The mask is built once and handed to the layers."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x, mask):
        q, k, v = self.qkv(x).chunk(3, dim=-1)

        weights = (q @ k.transpose(1, 2) / 8).masked_fill(~mask, float("-inf")).softmax(-1)
        return x + weights @ v


class Model(nn.Module):
    def __init__(self, layers=6, width=16):
        super().__init__()
        self.layers = nn.ModuleList(Layer(width) for _ in range(layers))

    def forward(self, x):
        mask = torch.ones(x.shape[1], x.shape[1]).tril().bool()
        for layer in self.layers:
            x = layer(x, mask)
        return x


def main():
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(1, 256, 16)
    for _ in range(15):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()


main()
