"""Predict the next hour of a patient's vital signs. The measurements lie in an SQLite file."""
import os
import sqlite3
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

PATIENTS, ROWS, STEPS = 1500, 48, 75


def build_database(path):
    rng = np.random.default_rng(0)
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE vitals (patient TEXT, hour INTEGER, pulse REAL, pressure REAL, oxygen REAL)")
        for hour in range(ROWS):
            values = rng.normal(size=(PATIENTS, 3))
            db.executemany("INSERT INTO vitals VALUES (?, ?, ?, ?, ?)",
                           [(f"P{p:05d}", hour, *map(float, values[p])) for p in range(PATIENTS)])
        db.commit()


class VitalsDataset(Dataset):
    def __init__(self, path):
        self.db = sqlite3.connect(path)
        self.patients = [f"P{p:05d}" for p in range(PATIENTS)]

    def __len__(self):
        return len(self.patients)

    def __getitem__(self, i):
        rows = self.db.execute(
            "SELECT pulse, pressure, oxygen FROM vitals WHERE patient = ? ORDER BY hour",
            (self.patients[i],),
        ).fetchall()
        series = torch.tensor(rows, dtype=torch.float32)
        return series[:-1], series[1:]


class VitalsNet(nn.Module):
    def __init__(self, hidden=256):
        super().__init__()
        self.rnn = nn.LSTM(3, hidden, num_layers=2, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 3))

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.head(h)


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "vitals.sqlite")
        build_database(path)
        loader = DataLoader(VitalsDataset(path), batch_size=24, shuffle=True, drop_last=True)
        model = VitalsNet()
        opt = torch.optim.Adam(model.parameters(), lr=1e-3)
        start, step = time.perf_counter(), 0
        while step < STEPS:
            for past, future in loader:
                loss = nn.functional.mse_loss(model(past), future)
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                step += 1
                if step % 25 == 0:
                    print(f"step {step} loss {loss.item():.4f}")
                if step == STEPS:
                    break
        print(f"{(time.perf_counter() - start) / step * 1e3:.1f} ms a step")


if __name__ == "__main__":
    main()
