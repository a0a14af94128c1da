# fmt: off
import time
import torch
import torch.nn as nn


class PatchNet(nn.Module):
    def __init__(self, n_classes=6):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU())
        self.stage1 = nn.Sequential(nn.Conv2d(32, 64, 3, stride=2, padding=1, bias=False),
                                    nn.BatchNorm2d(64), nn.ReLU())
        self.stage2 = nn.Sequential(nn.Conv2d(64, 128, 3, stride=2, padding=1, bias=False),
                                    nn.BatchNorm2d(128), nn.ReLU())
        self.head = nn.Linear(128, n_classes)

    def forward(self, x):
        x = self.stage2(self.stage1(self.stem(x)))
        return self.head(x.mean((2, 3)))


def make_patches(n=2048, size=28):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(n, 3, size, size, generator=g)
    y = torch.randint(0, 6, (n,), generator=g)
    return x, y


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    acc = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return acc


def main():
    torch.manual_seed(0)
    x, y = make_patches()
    x_val, y_val = x[:128], y[:128]
    model = PatchNet()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    running = torch.zeros(())
    t0 = time.perf_counter()
    for step in range(1, 161):
        rows = torch.randint(128, len(x), (32,))
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        running += loss.detach()
        if step % 40 == 0:
            print(f"step {step} loss {running.item() / 40:.3f} val {accuracy(model, x_val, y_val):.3f} "
                  f"{(time.perf_counter() - t0) / step * 1e3:.0f} ms/step")
            running.zero_()


if __name__ == "__main__":
    main()
# ruff: noqa
