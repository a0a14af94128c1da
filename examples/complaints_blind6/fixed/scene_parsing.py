"""Street scene segmentation with a running mean IoU in the progress line."""
import time

import torch
import torch.nn.functional as F
from torch import nn

N_CLASSES = 8


class SegNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.down2 = nn.Sequential(nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
                                   nn.BatchNorm2d(2 * width), nn.ReLU())
        self.mid = nn.Sequential(nn.Conv2d(2 * width, 2 * width, 3, padding=2, dilation=2), nn.ReLU())
        self.head = nn.Conv2d(3 * width, N_CLASSES, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.mid(self.down2(a))
        b = F.interpolate(b, size=a.shape[-2:], mode="bilinear", align_corners=False)
        return self.head(torch.cat([a, b], dim=1))


class MeanIoU:
    def __init__(self, n_classes):
        self.n = n_classes
        self.reset()

    def reset(self):
        self.confusion = torch.zeros(self.n, self.n, dtype=torch.long)

    def update(self, pred, target):
        pairs = target.view(-1) * self.n + pred.view(-1)
        self.confusion += torch.bincount(pairs, minlength=self.n ** 2).view(self.n, self.n)

    def value(self):
        hits = self.confusion.diag().float()
        union = self.confusion.sum(0) + self.confusion.sum(1) - self.confusion.diag()
        return (hits / union.clamp(min=1)).mean().item()


def street_scenes(n, size, seed):
    g = torch.Generator().manual_seed(seed)
    coarse = torch.randint(0, N_CLASSES, (n, 1, size // 8, size // 8), generator=g).float()
    labels = F.interpolate(coarse, size=size, mode="nearest").squeeze(1).long()
    palette = torch.rand(N_CLASSES, 3, generator=g)
    images = palette[labels].permute(0, 3, 1, 2) + 0.1 * torch.randn(n, 3, size, size, generator=g)
    return images.contiguous(), labels


def main():
    torch.manual_seed(0)
    images, labels = street_scenes(48, 48, seed=2)
    model = SegNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    metric = MeanIoU(N_CLASSES)
    for epoch in range(3):
        metric.reset()
        begin = time.time()
        for idx in torch.randperm(len(images)).split(4):
            x, y = images[idx], labels[idx]
            logits = model(x)
            loss = F.cross_entropy(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            metric.update(logits.argmax(1), y)
        print(f"epoch {epoch} loss {loss.item():.3f} mIoU {metric.value():.3f} {time.time() - begin:.1f}s")


if __name__ == "__main__":
    main()
