# fmt: off
import time
import torch
import torch.nn as nn


class LoadLSTM(nn.Module):
    def __init__(self, n_meters=12, hidden=128):
        super().__init__()
        self.lstm = nn.LSTM(n_meters, hidden, batch_first=True)
        self.head = nn.Linear(hidden, n_meters)

    def forward(self, x, state=None):
        out, state = self.lstm(x, state)
        return self.head(out), state


def year_of_load(n_buildings=16, hours=408, n_meters=12):
    g = torch.Generator().manual_seed(2)
    t = torch.arange(hours, dtype=torch.float32)
    daily = torch.sin(2 * torch.pi * t / 24)[None, :, None]
    return daily * torch.rand(n_buildings, 1, n_meters, generator=g) \
        + 0.1 * torch.randn(n_buildings, hours, n_meters, generator=g)


def train_epoch(model, opt, series, window=24):
    state, total, n = None, 0.0, 0
    opt.zero_grad()
    for start in range(0, series.size(1) - window, window):
        t0 = time.perf_counter()
        x = series[:, start:start + window]
        y = series[:, start + 1:start + window + 1]
        pred, state = model(x, state)
        loss = nn.functional.smooth_l1_loss(pred, y)
        loss.backward(retain_graph=True)
        total += loss.item()
        n += 1
        if n % 8 == 0:
            print(f"   window {n} loss {loss.item():.4f} {(time.perf_counter() - t0) * 1e3:.0f} ms")
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    opt.step()
    return total / n


def main():
    torch.manual_seed(0)
    series = year_of_load()
    model = LoadLSTM()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(16):
        t0 = time.perf_counter()
        loss = train_epoch(model, opt, series)
        print(f"epoch {epoch} loss {loss:.4f} {time.perf_counter() - t0:.2f} s")


if __name__ == "__main__":
    main()
# ruff: noqa
