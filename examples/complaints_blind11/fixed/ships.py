"""Segment ships in satellite tiles with a small U-Net, and log the competition's Dice score."""
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from scipy import ndimage

TILE = 128


class Tiles:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def batch(self, n):
        x = self.rng.normal(size=(n, 3, TILE, TILE)).astype(np.float32)
        m = np.zeros((n, 1, TILE, TILE), dtype=np.float32)
        for i in range(n):
            for _ in range(self.rng.integers(1, 5)):
                r, c = self.rng.integers(0, TILE - 24, 2)
                h, w = self.rng.integers(4, 24, 2)
                m[i, 0, r : r + h, c : c + w] = 1
        return torch.from_numpy(x + 0.6 * m), torch.from_numpy(m)


class Double(nn.Sequential):
    def __init__(self, a, b):
        super().__init__(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(),
                         nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        w = width
        self.d1, self.d2, self.d3 = Double(3, w), Double(w, 2 * w), Double(2 * w, 4 * w)
        self.u2, self.u1 = Double(6 * w, 2 * w), Double(3 * w, w)
        self.out = nn.Conv2d(w, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        c = self.d3(F.max_pool2d(b, 2))
        b = self.u2(torch.cat([F.interpolate(c, scale_factor=2.0), b], 1))
        return self.out(self.u1(torch.cat([F.interpolate(b, scale_factor=2.0), a], 1)))


def post_process(probability, threshold, min_size):
    components, count = ndimage.label(probability > threshold)
    kept = np.zeros(probability.shape, np.float32)
    for c in range(1, count + 1):
        p = components == c
        if p.sum() > min_size:
            kept[p] = 1
    return kept


def dice(logits, truth, threshold=0.5, min_size=12):
    scores = []
    for prob, mask in zip(torch.sigmoid(logits).numpy(), truth.numpy()):
        pred = post_process(prob[0], threshold, min_size)
        both = (pred * mask[0]).sum()
        total = pred.sum() + mask[0].sum()
        scores.append(1.0 if total == 0 else 2 * both / total)
    return float(np.mean(scores))


def training_step(model, optimizer, x, mask):
    out = model(x)
    loss = F.binary_cross_entropy_with_logits(out, mask, pos_weight=torch.tensor(5.0))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item(), out.detach()


def main(steps=40, batch=8):
    torch.manual_seed(0)
    tiles, model = Tiles(0), UNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    log, start = [], time.time()
    for step in range(steps):
        x, mask = tiles.batch(batch)
        loss, out = training_step(model, optimizer, x, mask)
        log.append(loss)
        if step % 20 == 19:
            score = dice(out, mask)
            print(f"step {step + 1} loss {np.mean(log[-20:]):.3f} dice {score:.3f} {time.time() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
