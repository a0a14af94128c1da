# fmt: off
import torch
import torch.nn as nn


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = block(3, 16), block(16, 32), block(48, 16)
        self.pool, self.up, self.out = nn.MaxPool2d(2), nn.Upsample(scale_factor=2), nn.Conv2d(16, 2, 1)

    def forward(self, x):
        a = self.a(x)
        return self.out(self.c(torch.cat([self.up(self.b(self.pool(a))), a], 1)))


def main():
    torch.manual_seed(0)
    net = UNet()
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    x, y = torch.randn(64, 3, 64, 64), torch.randint(0, 2, (64, 64, 64))
    for step in range(60):
        rows = torch.randint(0, 64, (8,))
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main()
# ruff: noqa
