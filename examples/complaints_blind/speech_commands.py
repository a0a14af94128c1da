# fmt: off
import time
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader


class KeywordClips(Dataset):
    """One second clips at 16 kHz, 12 keywords."""

    def __init__(self, n_clips=320, sr=16000, seed=0):
        rng = np.random.default_rng(seed)
        self.clips = rng.standard_normal((n_clips, sr)).astype(np.float32)
        self.labels = rng.integers(0, 12, n_clips)
        self.window = torch.hann_window(400)

    def __len__(self):
        return len(self.clips)

    def pre_emphasis(self, wave, coef=0.97):
        out = [float(wave[0])]
        for t in range(1, len(wave)):
            out.append(wave[t] - coef * wave[t - 1])
        return torch.tensor(np.array(out, dtype=np.float32))

    def __getitem__(self, i):
        wave = self.pre_emphasis(self.clips[i])
        spec = torch.stft(wave, 400, hop_length=160, window=self.window, return_complex=True)
        return spec.abs().add(1e-6).log(), int(self.labels[i])


class KeywordNet(nn.Module):
    def __init__(self, n_freq=201, n_classes=12):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(n_freq, 128, 5, padding=2), nn.BatchNorm1d(128), nn.ReLU(),
            nn.Conv1d(128, 128, 5, padding=2), nn.BatchNorm1d(128), nn.ReLU(),
            nn.AdaptiveAvgPool1d(1),
        )
        self.head = nn.Linear(128, n_classes)

    def forward(self, x):
        return self.head(self.body(x).squeeze(-1))


def main():
    torch.manual_seed(0)
    loader = DataLoader(KeywordClips(), batch_size=16, shuffle=True)
    model = KeywordNet()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step, t0 = 0, time.perf_counter()
    for epoch in range(4):
        for spec, label in loader:
            loss = nn.functional.cross_entropy(model(spec), label)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % 20 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.3f} "
                      f"{(time.perf_counter() - t0) / step * 1e3:.0f} ms/step")


if __name__ == "__main__":
    main()
# ruff: noqa
