# fmt: off
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(3, 8, 7, stride=4), nn.Conv2d(8, 16, 3, stride=4)
        self.out = nn.Linear(16, 10)

    def forward(self, x):
        x = F.interpolate(x, size=(160, 160), mode="bicubic", antialias=True)
        x = F.relu(self.c2(F.relu(self.c1(x))))
        return self.out(x.mean((2, 3)))


def main():
    torch.manual_seed(0)
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(60):
        x, y = torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,))
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main()
# ruff: noqa
