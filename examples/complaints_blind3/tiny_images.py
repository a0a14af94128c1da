"""VGG-like network on 32x32 pictures that are already in memory."""
import time

import torch
import torch.nn.functional as F
from torch import nn


def conv(i, o):
    return [nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True)]


class VGG(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Sequential(
            *conv(3, 32), *conv(32, 32), nn.MaxPool2d(2),
            *conv(32, 64), *conv(64, 64), nn.MaxPool2d(2),
            *conv(64, 128), nn.AdaptiveAvgPool2d(1))
        self.classifier = nn.Linear(128, classes)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def augment(images):
    if torch.rand(()) < 0.5:
        images = images.flip(3)
    dx, dy = torch.randint(-2, 3, (2,)).tolist()
    return images.roll((dy, dx), (2, 3))


def main():
    torch.manual_seed(0)
    images = torch.randint(0, 256, (2000, 3, 32, 32), dtype=torch.uint8)
    labels = torch.randint(0, 10, (2000,))
    model = VGG().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    steps, running, begin = 60, torch.zeros(()), time.perf_counter()
    for step in range(steps):
        picked = torch.randint(0, len(images), (64,))
        x = augment(images[picked].float().div_(255)).contiguous(memory_format=torch.channels_last)
        loss = F.cross_entropy(model(x), labels[picked])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        running += loss.detach()
        if (step + 1) % 15 == 0:
            print(f"iteration {step + 1} loss {running.item() / 15:.4f}")
            running.zero_()
    print(f"{(time.perf_counter() - begin) / steps * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
