# fmt: off
import torch
import torch.nn as nn


def hardest(dist, k=5):
    order = torch.sort(dist, dim=1, descending=False).indices
    return order[:, :k]


def main():
    torch.manual_seed(0)
    bank = torch.randn(20000, 32)
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(100):
        z = net(torch.randn(32, 64))
        with torch.no_grad():
            negatives = hardest(1 - z @ bank.t())
        loss = (z.unsqueeze(1) * bank[negatives]).sum(-1).relu().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main()
# ruff: noqa
