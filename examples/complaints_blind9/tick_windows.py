"""Forecast the next return of a symbol from bars kept in a SQLite file."""
import os
import sqlite3
import tempfile

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
WINDOW = 48
SYMBOLS = [f"SYM{i:03d}" for i in range(60)]


def build_database(path, bars=3000):
    rng = np.random.default_rng(0)
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE bars (symbol TEXT, t INTEGER, open REAL, high REAL, low REAL, close REAL, volume REAL)")
    price = rng.uniform(20, 200, len(SYMBOLS))
    for t in range(bars):
        move = rng.normal(0, 0.01, (len(SYMBOLS), 4))
        rows = [(s, t, price[i], price[i] * (1 + abs(move[i, 0])), price[i] * (1 - abs(move[i, 1])),
                 price[i] * (1 + move[i, 2]), 1e5 * (1 + abs(move[i, 3]))) for i, s in enumerate(SYMBOLS)]
        db.executemany("INSERT INTO bars VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        price *= 1 + move[:, 2]
    db.commit()
    db.close()


class BarWindows(Dataset):
    def __init__(self, path, bars=3000):
        self.db = sqlite3.connect(path)
        self.bars = bars

    def __len__(self):
        return len(SYMBOLS) * (self.bars - WINDOW - 1)

    def __getitem__(self, index):
        symbol = SYMBOLS[index % len(SYMBOLS)]
        start = index // len(SYMBOLS)
        rows = self.db.execute(
            "SELECT open, high, low, close, volume FROM bars"
            " WHERE symbol = ? AND t BETWEEN ? AND ? ORDER BY t",
            (symbol, start, start + WINDOW),
        ).fetchall()
        bars = torch.tensor(rows, dtype=torch.float32)
        close = bars[:, 3]
        features = torch.cat([bars[:-1, :4] / close[0] - 1, bars[:-1, 4:] / 1e5 - 1], dim=1)
        return features, (close[-1] / close[-2] - 1) * 100


class Forecaster(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.stem = nn.Conv1d(5, width, 5, padding=2)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        x = torch.relu(self.stem(x.transpose(1, 2))).transpose(1, 2)
        return self.head(self.gru(x)[0][:, -1]).squeeze(1)


def main(steps=70, batch=16):
    torch.manual_seed(0)
    path = os.path.join(tempfile.mkdtemp(), "bars.db")
    build_database(path)
    loader = DataLoader(BarWindows(path), batch_size=batch, shuffle=True)
    model = Forecaster()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.huber_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step:3d} loss {loss.item():.4f}")
        if step + 1 == steps:
            break
    os.remove(path)


if __name__ == "__main__":
    main()
