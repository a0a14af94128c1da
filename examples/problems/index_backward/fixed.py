"""Rows are looked up by F.embedding."""

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(0)


def main():
    table = nn.Parameter(torch.randn(2000, 64))
    optimizer = torch.optim.SGD([table], lr=0.01)
    rows = torch.randint(0, 2000, (20, 16384))
    for chosen in rows:
        optimizer.zero_grad()
        vectors = F.embedding(chosen, table)
        loss = vectors.mean()
        loss.backward()
        optimizer.step()


main()
