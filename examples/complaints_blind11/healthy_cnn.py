"""Plain supervised training: a small residual net on synthetic 48x48 pictures held as one tensor."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

CLASSES, BATCH = 8, 64


class Residual(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(a, b, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(b)
        self.conv2 = nn.Conv2d(b, b, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(b)
        self.skip = nn.Conv2d(a, b, 1, stride, bias=False)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(y)) + self.skip(x), inplace=True)


def main(epochs=2):
    torch.manual_seed(0)
    y = torch.randint(0, CLASSES, (1920,))
    x = torch.randn(CLASSES, 3, 48, 48)[y] + torch.randn(1920, 3, 48, 48)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, 1, 1), Residual(32, 32, 2), Residual(32, 64, 2), Residual(64, 128, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, CLASSES),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=epochs * len(y) // BATCH)
    for epoch in range(epochs):
        start, total = time.time(), torch.zeros(())
        for take in torch.randperm(len(y)).split(BATCH):
            loss = F.cross_entropy(model(x[take]), y[take])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.detach()
        print(f"epoch {epoch} loss {total.item() / (len(y) // BATCH):.3f} {time.time() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
