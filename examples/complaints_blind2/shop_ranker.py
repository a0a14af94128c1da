# fmt: off
import time
import torch
import torch.nn as nn


def configure():
    torch.set_num_threads(16)
    torch.manual_seed(0)


class Ranker(nn.Module):
    def __init__(self, n_items=400, dim=256):
        super().__init__()
        self.user = nn.Sequential(nn.Linear(128, dim), nn.ReLU(), nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.items = nn.Linear(dim, n_items)

    def forward(self, x):
        return self.items(self.user(x))


def main():
    configure()
    model = Ranker()
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(100):
        x, y = torch.randn(256, 128), torch.randint(0, 400, (256,))
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main()
# ruff: noqa
