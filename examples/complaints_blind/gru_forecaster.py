# fmt: off
import time
import numpy as np
import torch
import torch.nn as nn

torch.autograd.set_detect_anomaly(True)


class GatedCell(nn.Module):
    def __init__(self, n_in, n_hidden):
        super().__init__()
        self.x2h = nn.Linear(n_in, 3 * n_hidden)
        self.h2h = nn.Linear(n_hidden, 3 * n_hidden)

    def forward(self, x, h):
        xr, xz, xn = self.x2h(x).chunk(3, dim=-1)
        hr, hz, hn = self.h2h(h).chunk(3, dim=-1)
        r = torch.sigmoid(xr + hr)
        z = torch.sigmoid(xz + hz)
        n = torch.tanh(xn + r * hn)
        return (1 - z) * n + z * h


class DemandModel(nn.Module):
    def __init__(self, n_in=8, n_hidden=96):
        super().__init__()
        self.n_hidden = n_hidden
        self.cell = GatedCell(n_in, n_hidden)
        self.mean = nn.Linear(n_hidden, 1)
        self.log_scale = nn.Linear(n_hidden, 1)

    def forward(self, x):
        h = x.new_zeros(x.size(0), self.n_hidden)
        outs = []
        for t in range(x.size(1)):
            h = self.cell(x[:, t], h)
            outs.append(h)
        h = torch.stack(outs, dim=1)
        return self.mean(h).squeeze(-1), self.log_scale(h).squeeze(-1)


def nll(mean, log_scale, target):
    return (0.5 * ((target - mean) / log_scale.exp()) ** 2 + log_scale).mean()


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    model = DemandModel()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    t0 = time.perf_counter()
    for step in range(1, 101):
        x = torch.from_numpy(rng.standard_normal((32, 36, 8), dtype=np.float32))
        y = x[..., 0].roll(-1, dims=1)
        loss = nll(*model(x), y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 20 == 0:
            print(f"step {step} nll {loss.item():.4f} {(time.perf_counter() - t0) / step * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
# ruff: noqa
