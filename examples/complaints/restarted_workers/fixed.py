"""The workers stay alive from epoch to epoch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


def main():
    data = TensorDataset(torch.randn(64, 32), torch.randint(0, 4, (64,)))
    loader = DataLoader(data, batch_size=16, num_workers=1, persistent_workers=True)
    model = nn.Linear(32, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


if __name__ == "__main__":
    main()
