"""Count and measure nuclei: a U-Net predicts the foreground, scipy finds the components."""
import csv
import tempfile

import numpy as np
import torch
import torch.nn as nn
from scipy import ndimage

torch.set_num_threads(1)
SIZE = 384


def synthetic_slide(rng, nuclei=140):
    yy, xx = np.mgrid[:SIZE, :SIZE]
    image = rng.normal(0.1, 0.03, (SIZE, SIZE))
    for _ in range(nuclei):
        cy, cx, r = rng.integers(8, SIZE - 8), rng.integers(8, SIZE - 8), rng.uniform(3, 6)
        y0, y1, x0, x1 = max(cy - 10, 0), cy + 10, max(cx - 10, 0), cx + 10
        spot = (yy[y0:y1, x0:x1] - cy) ** 2 + (xx[y0:y1, x0:x1] - cx) ** 2 < r * r
        image[y0:y1, x0:x1][spot] += rng.uniform(0.5, 1.0)
    return image.astype(np.float32)


def conv(a, b, stride=1):
    return nn.Sequential(nn.Conv2d(a, b, 3, stride, 1), nn.BatchNorm2d(b), nn.ReLU(inplace=True))


class SmallUNet(nn.Module):
    def __init__(self, w=12):
        super().__init__()
        self.enc1, self.enc2, self.enc3 = conv(1, w), conv(w, 2 * w, 2), conv(2 * w, 4 * w, 2)
        self.up2 = nn.ConvTranspose2d(4 * w, 2 * w, 2, 2)
        self.dec2 = conv(4 * w, 2 * w)
        self.up1 = nn.ConvTranspose2d(2 * w, w, 2, 2)
        self.dec1 = conv(2 * w, w)
        self.out = nn.Conv2d(w, 1, 1)

    def forward(self, x):
        a = self.enc1(x)
        b = self.enc2(a)
        c = self.enc3(b)
        b = self.dec2(torch.cat([self.up2(c), b], 1))
        a = self.dec1(torch.cat([self.up1(b), a], 1))
        # untrained weights: keep the residual so that the foreground is meaningful
        return x - 0.4 + 1e-3 * self.out(a)


def measure(image, foreground):
    labels, _ = ndimage.label(foreground)
    report = []
    for nucleus in np.unique(labels):
        if nucleus == 0:
            continue
        mask = labels == nucleus
        area = mask.sum()
        if area < 12:
            continue
        intensity = image[mask].mean()
        cy, cx = np.argwhere(mask).mean(axis=0)
        report.append((int(nucleus), int(area), float(intensity), float(cy), float(cx)))
    return report


@torch.inference_mode()
def main(slides=110):
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    images = [synthetic_slide(rng) for _ in range(12)]
    model = SmallUNet().eval()
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as out:
        writer = csv.writer(out)
        writer.writerow(["slide", "nucleus", "area", "intensity", "y", "x"])
        for i in range(slides):
            image = images[i % len(images)]
            logits = model(torch.from_numpy(image)[None, None])
            foreground = (logits[0, 0] > 0).numpy()
            rows = measure(image, foreground)
            writer.writerows((i, *row) for row in rows)
            if i % 20 == 0:
                print(f"slide {i}: {len(rows)} nuclei")


if __name__ == "__main__":
    main()
