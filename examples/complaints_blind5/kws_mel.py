import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SR = 16000
N_FFT = 1024
HOP = 256
N_MELS = 80


def hz2mel(hz):
    return 2595 * np.log10(1 + hz / 700.0)


def mel2hz(mel):
    return 700 * (10 ** (mel / 2595.0) - 1)


def get_filterbanks(nfilt, nfft, samplerate):
    melpoints = np.linspace(hz2mel(0), hz2mel(samplerate / 2), nfilt + 2)
    bins = np.floor((nfft + 1) * mel2hz(melpoints) / samplerate)
    fbank = np.zeros([nfilt, nfft // 2 + 1])
    for j in range(nfilt):
        for i in range(int(bins[j]), int(bins[j + 1])):
            fbank[j, i] = (i - bins[j]) / (bins[j + 1] - bins[j])
        for i in range(int(bins[j + 1]), int(bins[j + 2])):
            fbank[j, i] = (bins[j + 2] - i) / (bins[j + 2] - bins[j + 1])
    return fbank


def log_mel(signal):
    signal = np.append(signal[0], signal[1:] - 0.97 * signal[:-1])
    frames = np.lib.stride_tricks.sliding_window_view(signal, N_FFT)[::HOP]
    power = np.abs(np.fft.rfft(frames * np.hamming(N_FFT))) ** 2 / N_FFT
    feat = power @ get_filterbanks(N_MELS, N_FFT, SR).T
    return np.log(np.maximum(feat, 1e-10)).T.astype(np.float32)


class Keywords(Dataset):
    def __init__(self, n):
        rng = np.random.default_rng(0)
        self.labels = rng.integers(0, 12, n)
        t = np.arange(SR // 2) / SR
        tones = np.sin(2 * np.pi * (200 + 150 * self.labels[:, None]) * t)
        self.waves = (tones + rng.normal(size=tones.shape) * 0.5).astype(np.float32)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, idx):
        wave = np.roll(self.waves[idx], np.random.randint(-1600, 1600))
        return torch.from_numpy(log_mel(wave)), int(self.labels[idx])


class DSCNN(nn.Module):
    def __init__(self, n_mels, n_classes, ch=64):
        super().__init__()
        self.stem = nn.Conv1d(n_mels, ch, 5, padding=2)
        self.dw = nn.ModuleList([nn.Conv1d(ch, ch, 9, padding=4, groups=ch) for _ in range(3)])
        self.pw = nn.ModuleList([nn.Conv1d(ch, ch, 1) for _ in range(3)])
        self.out = nn.Linear(ch, n_classes)

    def forward(self, x):
        x = F.relu(self.stem(x - x.mean(2, keepdim=True)))
        for dw, pw in zip(self.dw, self.pw):
            x = F.relu(pw(dw(x))) + x
        return self.out(x.mean(2))


if __name__ == "__main__":
    torch.manual_seed(0)
    loader = DataLoader(Keywords(1024), batch_size=32, shuffle=True)
    model = DSCNN(N_MELS, 12)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(4):
        start = time.time()
        for feats, labels in loader:
            loss = F.cross_entropy(model(feats), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"Epoch {epoch}: loss={loss.item():.3f}, {time.time() - start:.2f} s")
