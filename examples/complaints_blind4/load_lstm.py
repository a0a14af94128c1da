"""Electricity load with a two layer LSTM."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class LoadDataset(Dataset):
    def __init__(self, hours=6000, meters=32, window=72, horizon=24):
        t = torch.arange(hours)[:, None] / 24 * 2 * torch.pi
        self.series = torch.sin(t + torch.rand(meters) * 6) + 0.2 * torch.randn(hours, meters)
        self.window, self.horizon = window, horizon

    def __len__(self):
        return len(self.series) - self.window - self.horizon

    def __getitem__(self, i):
        j = i + self.window
        return self.series[i:j], self.series[j:j + self.horizon]


class Forecaster(nn.Module):
    def __init__(self, meters=32, hidden=256, horizon=24):
        super().__init__()
        self.lstm = nn.LSTM(meters, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, meters * horizon)
        self.horizon = horizon

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.head(out[:, -1]).view(len(x), self.horizon, -1)


def main():
    loader = DataLoader(LoadDataset(), batch_size=128, shuffle=True, drop_last=True)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    start = time.time()
    for step, (x, y) in enumerate(loader, 1):
        loss = F.l1_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 8 == 0:
            print(f"step {step} loss {loss.item():.4f} {(time.time() - start) / step * 1e3:.0f} ms/step")
        if step == 24:
            break


if __name__ == "__main__":
    main()
