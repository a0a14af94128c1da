"""Forecast of 24 hours of load for 32 grid nodes from the week before (TSMixer)."""
import time

import torch
from torch import nn


class MixerBlock(nn.Module):
    def __init__(self, length, channels, hidden):
        super().__init__()
        self.norm1 = nn.LayerNorm(channels)
        self.time = nn.Sequential(nn.Linear(length, length), nn.ReLU())
        self.norm2 = nn.LayerNorm(channels)
        self.chan = nn.Sequential(nn.Linear(channels, hidden), nn.ReLU(), nn.Linear(hidden, channels))

    def forward(self, x):
        x = x + self.time(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.chan(self.norm2(x))


class TSMixer(nn.Module):
    def __init__(self, length, horizon, channels, hidden=64, depth=3):
        super().__init__()
        self.blocks = nn.Sequential(*[MixerBlock(length, channels, hidden) for _ in range(depth)])
        self.project = nn.Linear(length, horizon)

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        x = self.blocks(x - mean)
        return self.project(x.transpose(1, 2)).transpose(1, 2) + mean


def grid_load(hours, nodes):
    g = torch.Generator().manual_seed(3)
    t = torch.arange(hours).float().unsqueeze(1)
    phase = torch.rand(nodes, generator=g) * 6.28
    daily = torch.sin(t * 6.283 / 24 + phase)
    weekly = 0.5 * torch.sin(t * 6.283 / 168 + phase)
    return daily + weekly + 0.1 * torch.randn(hours, nodes, generator=g)


def main():
    torch.manual_seed(0)
    length, horizon, nodes = 168, 24, 32
    series = grid_load(4000, nodes)
    windows = series.unfold(0, length + horizon, 1).transpose(1, 2)
    model = TSMixer(length, horizon, nodes)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        begin, losses = time.time(), []
        for idx in torch.randperm(len(windows)).split(64):
            batch = windows[idx]
            loss = nn.functional.mse_loss(model(batch[:, :length]), batch[:, length:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch} mse {sum(losses) / len(losses):.4f} "
              f"{(time.time() - begin) / len(losses) * 1e3:.0f} ms/batch")


if __name__ == "__main__":
    main()
