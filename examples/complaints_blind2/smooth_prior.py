# fmt: off
import torch
import torch.nn as nn


class Prior:
    def __init__(self, n=400):
        grid = torch.linspace(0, 1, n)
        self.cov = torch.exp(-(grid[:, None] - grid[None]).pow(2) / 0.01) + 1e-2 * torch.eye(n)

    def penalty(self, f):
        return (f @ torch.linalg.inv(self.cov) * f).sum(1).mean()


def main():
    torch.manual_seed(0)
    prior, net = Prior(), nn.Linear(20, 400)
    opt = torch.optim.Adam(net.parameters())
    for step in range(100):
        x = torch.randn(16, 20)
        f = net(x)
        loss = (f.mean(1) - x.sum(1)).pow(2).mean() + 1e-4 * prior.penalty(f)
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main()
# ruff: noqa
