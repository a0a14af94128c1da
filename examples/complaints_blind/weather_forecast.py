# fmt: off
import time
import numpy as np
import torch
import torch.nn as nn

HISTORY, HORIZON, STATIONS = 96, 24, 10


def load_stations(hours=6000, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    base = np.sin(2 * np.pi * t / 24)[:, None] + 0.3 * np.cos(2 * np.pi * t / 8760)[:, None]
    noise = rng.normal(0, 0.2, (hours, STATIONS))
    series = 15 + 8 * base + noise
    return (series - series.mean(0)) / series.std(0)


def sample_windows(series, batch, rng):
    starts = rng.integers(0, len(series) - HISTORY - HORIZON, batch)
    x = np.stack([series[s:s + HISTORY].ravel() for s in starts])
    y = np.stack([series[s + HISTORY:s + HISTORY + HORIZON].ravel() for s in starts])
    return torch.from_numpy(x), torch.from_numpy(y)


class Forecaster(nn.Module):
    def __init__(self, width=768):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(HISTORY * STATIONS, width), nn.GELU(),
            nn.Linear(width, width), nn.GELU(),
            nn.Linear(width, width), nn.GELU(),
            nn.Linear(width, HORIZON * STATIONS),
        )

    def forward(self, x):
        return self.net(x)


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(1)
    series = load_stations()
    model = Forecaster().double()
    opt = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    loss_fn = nn.MSELoss()
    n_steps = 90
    t0 = time.perf_counter()
    for step in range(1, n_steps + 1):
        x, y = sample_windows(series, 256, rng)
        opt.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        opt.step()
        if step % 10 == 0:
            ms = (time.perf_counter() - t0) / step * 1e3
            print(f"[{step}/{n_steps}] mse {loss.item():.4f}  {ms:.0f} ms/step")


if __name__ == "__main__":
    main()
# ruff: noqa
