"""Forecast of the next value of many sensors with a recurrent net."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Forecaster(nn.Module):
    def __init__(self, n_features=16, hidden=48):
        super().__init__()
        self.hidden = hidden
        self.gru = nn.GRU(n_features, hidden, num_layers=2, batch_first=True)
        self.fc = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.gru(x)
        return self.fc(out).squeeze(-1)


def make_windows(count, seq_len, n_features):
    torch.manual_seed(0)
    phase = torch.rand(count, 1, n_features) * 6.28
    t = torch.arange(seq_len + 1).view(1, -1, 1) * 0.1
    series = torch.sin(t + phase) + 0.1 * torch.randn(count, seq_len + 1, n_features)
    return series[:, :-1], series[:, 1:, 0]


def main():
    x, y = make_windows(640, 200, 16)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = Forecaster()
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps, begin = 0, time.perf_counter()
    for epoch in range(2):
        total = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() * len(xb)
            steps += 1
        print(f"Epoch {epoch + 1}: mse {total / len(x):.5f}")
    print(f"{(time.perf_counter() - begin) / steps * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
