"""Remove noise from micrographs; the loss is structural similarity and the mean absolute error."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

STEPS, BATCH, SIZE = 60, 8, 80


def gaussian_window(size=11, sigma=1.5, channels=3):
    x = torch.arange(size, dtype=torch.float32) - size // 2
    g = torch.exp(-(x**2) / (2 * sigma**2))
    g = g / g.sum()
    return torch.outer(g, g).expand(channels, 1, size, size).contiguous()


class SSIMLoss(nn.Module):
    def __init__(self, channels=3):
        super().__init__()
        self.channels = channels
        self.register_buffer("window", gaussian_window(channels=channels))

    def blur(self, x):
        return F.conv2d(x, self.window, padding=5, groups=self.channels)

    def forward(self, a, b):
        c1, c2 = 0.01**2, 0.03**2
        mu_a, mu_b = self.blur(a), self.blur(b)
        var_a = self.blur(a * a) - mu_a**2
        var_b = self.blur(b * b) - mu_b**2
        cov = self.blur(a * b) - mu_a * mu_b
        score = ((2 * mu_a * mu_b + c1) * (2 * cov + c2)) / ((mu_a**2 + mu_b**2 + c1) * (var_a + var_b + c2))
        return 1 - score.mean()


class Denoiser(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, width, 3, stride=2, padding=1), nn.ReLU(),
                                  nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU())
        self.mid = nn.Sequential(nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.ReLU(),
                                 nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.ReLU())
        self.up = nn.Sequential(nn.Conv2d(2 * width, 4 * 3, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, x):
        h = self.down(x)
        return torch.sigmoid(self.up(h + self.mid(h)))


def main():
    torch.manual_seed(0)
    clean = F.interpolate(torch.rand(128, 3, 10, 10), size=SIZE, mode="bilinear", align_corners=False)
    model, ssim = Denoiser(), SSIMLoss()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    start = time.perf_counter()
    for step in range(STEPS):
        target = clean[torch.randint(0, len(clean), (BATCH,))]
        noisy = (target + 0.15 * torch.randn_like(target)).clamp_(0, 1)
        out = model(noisy)
        loss = 0.8 * ssim(out, target) + 0.2 * F.l1_loss(out, target)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if (step + 1) % 20 == 0:
            print(f"step {step + 1} loss {loss.item():.4f}")
    print(f"{(time.perf_counter() - start) / STEPS * 1e3:.1f} ms a step")


if __name__ == "__main__":
    main()
