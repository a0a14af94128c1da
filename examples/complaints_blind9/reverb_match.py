"""Fit a room impulse response and a small denoiser to dry/wet speech pairs."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)

SAMPLE_RATE = 16000
IR_LENGTH = 1024
BATCH = 8


class LearnedReverb(nn.Module):
    """A trainable FIR filter as long as the room rings."""

    def __init__(self, length=IR_LENGTH):
        super().__init__()
        decay = torch.exp(-torch.arange(length) / (length / 6))
        self.impulse = nn.Parameter(torch.randn(length) * 0.05 * decay)

    def forward(self, wav):
        kernel = self.impulse.flip(0).view(1, 1, -1)
        padded = F.pad(wav, (self.impulse.numel() - 1, 0))
        return F.conv1d(padded, kernel)


class Denoiser(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, width, 16, stride=4, padding=6), nn.GELU(),
            nn.Conv1d(width, 2 * width, 16, stride=4, padding=6), nn.GELU(),
            nn.Conv1d(2 * width, 2 * width, 9, padding=4), nn.GELU(),
            nn.ConvTranspose1d(2 * width, width, 16, stride=4, padding=6), nn.GELU(),
            nn.ConvTranspose1d(width, 1, 16, stride=4, padding=6),
        )

    def forward(self, wav):
        return wav + self.net(wav)


def make_corpus(count=128, seconds=0.75):
    n = int(SAMPLE_RATE * seconds)
    t = torch.arange(n) / SAMPLE_RATE
    f0 = 90 + 150 * torch.rand(count, 1)
    voiced = sum(torch.sin(2 * torch.pi * f0 * k * t) / k for k in range(1, 6))
    envelope = torch.sin(2 * torch.pi * 3 * t + 6 * torch.rand(count, 1)).clamp(min=0)
    dry = (voiced * envelope).unsqueeze(1) * 0.2
    room = torch.randn(512) * torch.exp(-torch.arange(512) / 90.0) * 0.1
    spec = torch.fft.rfft(dry, n + 512) * torch.fft.rfft(room, n + 512)
    wet = torch.fft.irfft(spec, n + 512)[..., :n]
    return dry, wet + 0.01 * torch.randn_like(wet)


def spectral_loss(a, b):
    window = torch.hann_window(512)
    sa = torch.stft(a.squeeze(1), 512, 128, window=window, return_complex=True).abs()
    sb = torch.stft(b.squeeze(1), 512, 128, window=window, return_complex=True).abs()
    return F.l1_loss(torch.log1p(sa), torch.log1p(sb))


def main(steps=60):
    dry, wet = make_corpus()
    reverb, denoiser = LearnedReverb(), Denoiser()
    params = list(reverb.parameters()) + list(denoiser.parameters())
    opt = torch.optim.Adam(params, lr=2e-3)
    for step in range(steps):
        pick = torch.randint(0, len(dry), (BATCH,))
        clean = denoiser(wet[pick])
        simulated = reverb(dry[pick])
        loss = spectral_loss(simulated, wet[pick]) + F.l1_loss(clean, dry[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 15 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
