"""N-BEATS on hourly power demand."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.autograd.set_detect_anomaly(True)

BACKCAST, FORECAST, UNITS = 120, 24, 128


class NBeatsBlock(nn.Module):
    def __init__(self, theta=16):
        super().__init__()
        self.fc = nn.ModuleList([nn.Linear(BACKCAST if i == 0 else UNITS, UNITS) for i in range(4)])
        self.theta_b = nn.Linear(UNITS, theta, bias=False)
        self.theta_f = nn.Linear(UNITS, theta, bias=False)
        self.backcast = nn.Linear(theta, BACKCAST)
        self.forecast = nn.Linear(theta, FORECAST)

    def forward(self, x):
        for layer in self.fc:
            x = F.relu(layer(x))
        return self.backcast(self.theta_b(x)), self.forecast(self.theta_f(x))


class NBeats(nn.Module):
    def __init__(self, stacks=3, blocks=4):
        super().__init__()
        self.blocks = nn.ModuleList([NBeatsBlock() for _ in range(stacks * blocks)])

    def forward(self, x):
        forecast = torch.zeros(x.shape[0], FORECAST)
        for block in self.blocks:
            b, f = block(x)
            x = x - b
            forecast = forecast + f
        return forecast


def smape(forecast, target):
    return 200 * ((forecast - target).abs() / (forecast.abs() + target.abs() + 1e-3)).mean()


def make_windows(series, n):
    starts = torch.randint(0, len(series) - BACKCAST - FORECAST, (n,))
    windows = series.unfold(0, BACKCAST + FORECAST, 1)[starts]
    return windows[:, :BACKCAST], windows[:, BACKCAST:]


def train(model, series, steps=300, batch_size=128):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, fused=True)
    start = time.time()
    for step in range(1, steps + 1):
        x, y = make_windows(series, batch_size)
        optimizer.zero_grad()
        loss = smape(model(x), y)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step:4d} smape {loss.item():.2f} {(time.time() - start) / step * 1e3:.1f} ms/step")


if __name__ == "__main__":
    hours = torch.arange(24 * 365 * 3).float()
    demand = 10 + 3 * torch.sin(hours * 2 * torch.pi / 24) + torch.sin(hours * 2 * torch.pi / 168) + 0.3 * torch.randn(len(hours))
    train(NBeats(), demand)
