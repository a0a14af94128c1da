"""CNN on 32x32 images; an activation monitor was added when the loss went NaN once."""
import argparse
import time
from collections import defaultdict

import torch
from torch import nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.skip = nn.Conv2d(cin, cout, 1, stride) if (stride != 1 or cin != cout) else nn.Identity()

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.skip(x))


class Net(nn.Module):
    def __init__(self, width=32, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, 1, 1)
        self.body = nn.Sequential(Block(width, width), Block(width, 2 * width, 2), Block(2 * width, 4 * width, 2))
        self.head = nn.Linear(4 * width, classes)

    def forward(self, x):
        x = self.body(F.relu(self.stem(x)))
        return self.head(x.mean((2, 3)))


class ActivationWatch:
    """Keeps the range of every convolution's output, to see where values blow up."""

    def __init__(self, model):
        self.stats = defaultdict(list)
        for name, m in model.named_modules():
            if isinstance(m, nn.Conv2d):
                m.register_forward_hook(self.make(name))

    def make(self, name):
        def hook(module, args, out):
            flat = out.detach().flatten()
            lo, hi = flat.kthvalue(max(1, flat.numel() // 100)).values, flat.kthvalue(flat.numel() * 99 // 100).values
            self.stats[name] = [lo, hi]
        return hook


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=40)
    p.add_argument("--batch", type=int, default=32)
    args = p.parse_args()
    torch.manual_seed(0)
    images = torch.randn(2048, 3, 32, 32)
    labels = torch.randint(0, 10, (2048,))
    model = Net()
    watch = ActivationWatch(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    t0 = time.time()
    for step in range(args.steps):
        idx = torch.randint(0, len(images), (args.batch,))
        loss = F.cross_entropy(model(images[idx]), labels[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print(step, round(loss.item(), 4), {k: round(float(v[1]), 2) for k, v in watch.stats.items()})
    print(f"{1000 * (time.time() - t0) / args.steps:.1f} ms/step")


if __name__ == "__main__":
    main()
