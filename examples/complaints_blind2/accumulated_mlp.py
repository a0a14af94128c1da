# fmt: off
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(48, 48) for _ in range(10))
        self.head = nn.Linear(48, 3)

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x)) + x
        return self.head(x)


def micro_batches(x, y):
    for i in range(len(x)):
        yield x[i:i + 1], y[i:i + 1]


def main():
    torch.manual_seed(0)
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(80):
        x, y = torch.randn(32, 48), torch.randint(0, 3, (32,))
        opt.zero_grad()
        for xb, yb in micro_batches(x, y):
            loss = nn.functional.cross_entropy(net(xb), yb) / 32
            loss.backward()
        opt.step()


if __name__ == "__main__":
    main()
# ruff: noqa
