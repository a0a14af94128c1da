"""Train a RealNVP on two spirals and keep a picture of the loss up to date."""
import os
import tempfile

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(0)


def spirals(n):
    t = torch.sqrt(torch.rand(n)) * 3 * torch.pi
    sign = (torch.rand(n) < 0.5).float() * 2 - 1
    xy = torch.stack([t.cos() * t, t.sin() * t], 1) * sign.unsqueeze(1) / 5
    return xy + 0.05 * torch.randn_like(xy)


class Coupling(nn.Module):
    def __init__(self, flip, width=256):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                 nn.Linear(width, 2))

    def forward(self, x):
        a, b = x.split(1, dim=1)
        if self.flip:
            a, b = b, a
        shift, scale = self.net(a).chunk(2, dim=1)
        scale = torch.tanh(scale)
        b = b * scale.exp() + shift
        return torch.cat([b, a] if self.flip else [a, b], dim=1), scale.squeeze(1)


class RealNVP(nn.Module):
    def __init__(self, layers=6):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(i % 2 == 1) for i in range(layers))

    def log_prob(self, x):
        logdet = torch.zeros(len(x))
        for layer in self.layers:
            x, ld = layer(x)
            logdet = logdet + ld
        return (-0.5 * (x**2).sum(1) - 1.8379) + logdet


def update_picture(history, samples, path):
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
    left.plot(history, label="negative log-likelihood")
    left.set_xlabel("step")
    left.legend()
    right.scatter(samples[:, 0], samples[:, 1], s=2)
    right.set_title(f"batch at step {len(history)}")
    fig.tight_layout()
    fig.savefig(path)
    plt.close(fig)


def main(steps=50, batch=1024):
    flow = RealNVP()
    optimizer = torch.optim.Adam(flow.parameters(), lr=1e-3)
    folder = tempfile.mkdtemp()
    history = []
    for step in range(steps):
        x = spirals(batch)
        loss = -flow.log_prob(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
        if step + 1 == steps:
            update_picture(history, x, os.path.join(folder, "progress.png"))
        if step % 10 == 0:
            print(f"step {step}: {history[-1]:.4f}")


if __name__ == "__main__":
    main()
