"""Day-ahead output of a solar park from weather features; the network gives a mean and a variance."""
import time

import torch
from torch import nn


class SolarNet(nn.Module):
    def __init__(self, n_features, width=192):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(n_features, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
        )
        self.mean = nn.Linear(width, 1)
        self.log_var = nn.Linear(width, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.mean(h), self.log_var(h).clamp(-6, 6)


def gaussian_nll(mean, log_var, y):
    se = (y - mean) ** 2
    return 0.5 * (log_var + se * torch.exp(-log_var)).mean()


def make_data(n, n_features):
    g = torch.Generator().manual_seed(1)
    x = torch.randn(n, n_features, generator=g)
    w = torch.randn(n_features, generator=g) / n_features ** 0.5
    y = torch.relu(x @ w + 0.3 * torch.sin(3 * x[:, 0])) + 0.1 * torch.randn(n, generator=g)
    return x, y


def main():
    torch.manual_seed(0)
    x, y = make_data(40960, 24)
    model = SolarNet(24)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=4)
    batch_size = 2048

    for epoch in range(4):
        t0 = time.time()
        perm = torch.randperm(len(x))
        total = 0.0
        for i in range(0, len(x), batch_size):
            idx = perm[i:i + batch_size]
            mean, log_var = model(x[idx])
            loss = gaussian_nll(mean, log_var, y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        sched.step()
        print(f"epoch {epoch}  nll {total / len(x):.4f}  {time.time() - t0:.2f}s")


if __name__ == "__main__":
    main()
