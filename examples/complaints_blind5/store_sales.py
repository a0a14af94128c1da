import time

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

LOOKBACK, HORIZON = 28, 7


def make_sales(n_stores=40, n_days=400):
    rng = np.random.default_rng(2)
    days = pd.date_range("2023-01-01", periods=n_days)
    frame = pd.DataFrame({
        "store": np.repeat([f"S{i:03d}" for i in range(n_stores)], n_days),
        "date": np.tile(days, n_stores),
        "promo": rng.integers(0, 2, n_stores * n_days),
    })
    level = np.repeat(rng.uniform(20, 80, n_stores), n_days)
    season = 10 * np.sin(2 * np.pi * frame["date"].dt.dayofweek / 7)
    frame["sales"] = level + season + 8 * frame["promo"] + rng.normal(0, 3, len(frame))
    return frame.sort_values(["date", "store"], ignore_index=True)


class SalesWindows(Dataset):
    def __init__(self, frame):
        self.frame = frame
        self.stores = frame["store"].unique()
        self.n_windows = frame["date"].nunique() - LOOKBACK - HORIZON + 1
        self.mean, self.std = frame["sales"].mean(), frame["sales"].std()

    def __len__(self):
        return len(self.stores) * self.n_windows

    def __getitem__(self, idx):
        store, start = self.stores[idx // self.n_windows], idx % self.n_windows
        history = self.frame[self.frame["store"] == store]
        values = history[["sales", "promo"]].to_numpy(np.float32)[start : start + LOOKBACK + HORIZON]
        sales = (values[:, 0] - self.mean) / self.std
        x = np.stack([sales[:LOOKBACK], values[:LOOKBACK, 1]], axis=1).astype(np.float32)
        return x, values[LOOKBACK:, 1], sales[LOOKBACK:].astype(np.float32)


class TCN(nn.Module):
    def __init__(self, ch=64):
        super().__init__()
        self.inp = nn.Conv1d(2, ch, 1)
        self.convs = nn.ModuleList([nn.Conv1d(ch, ch, 3, dilation=2**i, padding=2**i) for i in range(4)])
        self.head = nn.Sequential(nn.Linear(ch + HORIZON, 64), nn.ReLU(), nn.Linear(64, HORIZON))

    def forward(self, x, future_promo):
        h = self.inp(x.transpose(1, 2))
        for conv in self.convs:
            h = h + torch.relu(conv(h))
        return self.head(torch.cat([h[:, :, -1], future_promo], 1))


def main():
    torch.manual_seed(2)
    loader = DataLoader(SalesWindows(make_sales()), batch_size=64, shuffle=True)
    model = TCN()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    tick = time.time()
    for step, (x, promo, y) in enumerate(loader, 1):
        loss = nn.functional.smooth_l1_loss(model(x, promo), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f} {(time.time() - tick) / 10 * 1e3:.0f} ms")
            tick = time.time()
        if step == 40:
            break


if __name__ == "__main__":
    main()
