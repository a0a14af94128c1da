"""Small ResNet-like classifier on images held in memory; healthy."""
import time

import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class InMemory(Dataset):
    def __init__(self, n):
        self.x = torch.randn(n, 3, 32, 32)
        self.y = torch.randint(0, 10, (n,))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def conv(cin, cout, stride):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


def main(epochs=2):
    torch.manual_seed(0)
    model = nn.Sequential(conv(3, 32, 1), conv(32, 64, 2), conv(64, 64, 1), conv(64, 128, 2),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))
    loader = DataLoader(InMemory(1280), batch_size=64, shuffle=True, drop_last=True)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=epochs * len(loader))
    steps, t0 = 0, time.time()
    for epoch in range(epochs):
        model.train()
        total = torch.zeros(())
        for x, y in loader:
            loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            sched.step()
            total += loss.detach()
            steps += 1
        print(f"epoch {epoch} loss {total.item() / len(loader):.4f} lr {sched.get_last_lr()[0]:.4f}")
    print(f"{1000 * (time.time() - t0) / steps:.1f} ms/step")


if __name__ == "__main__":
    main()
