"""Land cover of satellite tiles, with a confusion matrix for the IoU."""
import time

import torch
import torch.nn.functional as F
from torch import nn

CLASSES, BANDS, TILE = 6, 4, 32


class SegNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(BANDS, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, CLASSES, 1))

    def forward(self, x):
        return self.net(x)


class IoUMeter:
    def __init__(self, classes):
        self.matrix = [[0] * classes for _ in range(classes)]

    def update(self, logits, target):
        pred = logits.argmax(1)
        for p, t in zip(pred.reshape(-1), target.reshape(-1)):
            self.matrix[t.item()][p.item()] += 1

    def mean_iou(self):
        m = torch.tensor(self.matrix, dtype=torch.float)
        return (m.diag() / (m.sum(0) + m.sum(1) - m.diag() + 1e-6)).mean().item()


def make_tiles(count):
    tiles = F.avg_pool2d(torch.randn(count, BANDS, TILE, TILE), 3, 1, 1)
    labels = (tiles.sum(1).clamp(-2, 2) / 4 * (CLASSES - 1) + 2.5).round().long().clamp(0, CLASSES - 1)
    return tiles, labels


def main():
    torch.manual_seed(0)
    tiles, labels = make_tiles(400)
    model = SegNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps, begin = 0, time.perf_counter()
    for epoch in range(2):
        meter = IoUMeter(CLASSES)
        for start in range(0, len(tiles), 8):
            x, y = tiles[start:start + 8], labels[start:start + 8]
            logits = model(x)
            loss = F.cross_entropy(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            meter.update(logits, y)
            steps += 1
        print(f"epoch {epoch} loss {loss.item():.4f} mIoU {meter.mean_iou():.4f}")
    print(f"{(time.perf_counter() - begin) / steps * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
