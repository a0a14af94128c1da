"""Classify long electrocardiograms with convolutions as long as the signal, computed through the Fourier transform."""
import time

import torch
import torch.nn as nn

STEPS, BATCH, LENGTH, WIDTH, LEADS = 40, 8, 4051, 32, 6


class LongConv(nn.Module):
    """A causal filter over the whole record for each channel, as in state-space models."""

    def __init__(self, width, length):
        super().__init__()
        decay = torch.exp(-torch.linspace(0, 6, length))
        self.kernel = nn.Parameter(torch.randn(width, length) * decay / length**0.5)
        self.skip = nn.Parameter(torch.ones(width))

    def forward(self, u):
        length = u.shape[-1]
        n = 1 << (2 * length - 2).bit_length()
        k = torch.fft.rfft(self.kernel, n=n)
        y = torch.fft.irfft(torch.fft.rfft(u, n=n) * k, n=n)[..., :length]
        return y + u * self.skip[:, None]


class Block(nn.Module):
    def __init__(self, width, length):
        super().__init__()
        self.conv = LongConv(width, length)
        self.mix = nn.Conv1d(width, width, 1)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x):
        return x + self.mix(nn.functional.gelu(self.conv(self.norm(x))))


class ECGNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv1d(LEADS, WIDTH, 7, padding=3)
        self.blocks = nn.Sequential(*[Block(WIDTH, LENGTH) for _ in range(3)])
        self.head = nn.Linear(WIDTH, 5)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean(-1))


def make_records(n=256):
    g = torch.Generator().manual_seed(4)
    t = torch.arange(LENGTH) / 360.0
    rate = 0.8 + torch.rand(n, 1, 1, generator=g)
    beats = torch.sin(6.28 * rate * t).pow(31)
    return beats * torch.rand(n, LEADS, 1, generator=g), (rate.flatten() * 2.7).long() % 5


def main():
    torch.manual_seed(0)
    records, labels = make_records()
    model = ECGNet()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    start = time.perf_counter()
    for step in range(STEPS):
        idx = torch.randint(0, len(records), (BATCH,))
        loss = nn.functional.cross_entropy(model(records[idx]), labels[idx])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if (step + 1) % 10 == 0:
            print(f"step {step + 1} loss {loss.item():.4f}")
    print(f"{(time.perf_counter() - start) / STEPS * 1e3:.1f} ms a step")


if __name__ == "__main__":
    main()
