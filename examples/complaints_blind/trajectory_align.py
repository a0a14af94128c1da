# fmt: off
import time
import numpy as np
import torch
import torch.nn as nn


class AlignmentCost(torch.autograd.Function):
    """Smooth alignment of two trajectories, gamma = 1."""

    @staticmethod
    def forward(ctx, dist):
        d = dist.detach().numpy()
        bsz, n, m = d.shape
        r = np.full((bsz, n + 2, m + 2), np.inf)
        r[:, 0, 0] = 0.0
        for b in range(bsz):
            for i in range(1, n + 1):
                for j in range(1, m + 1):
                    prev = np.array([r[b, i - 1, j - 1], r[b, i - 1, j], r[b, i, j - 1]])
                    low = prev.min()
                    r[b, i, j] = d[b, i - 1, j - 1] + low - np.log(np.exp(low - prev).sum())
        ctx.d, ctx.r = d, r
        return torch.from_numpy(r[:, n, m].astype(np.float32))

    @staticmethod
    def backward(ctx, grad_out):
        d, r = ctx.d, ctx.r
        bsz, n, m = d.shape
        e = np.zeros((bsz, n + 2, m + 2))
        dd = np.zeros((bsz, n + 2, m + 2))
        dd[:, 1:n + 1, 1:m + 1] = d
        r[:, :, m + 1] = r[:, n + 1, :] = -np.inf
        r[:, n + 1, m + 1] = r[:, n, m]
        e[:, n + 1, m + 1] = 1.0
        for b in range(bsz):
            for i in range(n, 0, -1):
                for j in range(m, 0, -1):
                    here = r[b, i, j]
                    e[b, i, j] = (np.exp(r[b, i + 1, j] - here - dd[b, i + 1, j]) * e[b, i + 1, j]
                                  + np.exp(r[b, i, j + 1] - here - dd[b, i, j + 1]) * e[b, i, j + 1]
                                  + np.exp(r[b, i + 1, j + 1] - here - dd[b, i + 1, j + 1]) * e[b, i + 1, j + 1])
        grad = torch.from_numpy(e[:, 1:n + 1, 1:m + 1].astype(np.float32))
        return grad_out.view(-1, 1, 1) * grad


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 3))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    t0 = time.perf_counter()
    for step in range(1, 151):
        robot = torch.randn(8, 22, 6)
        human = torch.randn(8, 22, 3).cumsum(1)
        dist = torch.cdist(model(robot).cumsum(1), human).pow(2)
        loss = AlignmentCost.apply(dist).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 30 == 0:
            print(f"iter {step} cost {loss.item():.3f} {(time.perf_counter() - t0) / step * 1e3:.0f} ms/iter")


if __name__ == "__main__":
    main()
# ruff: noqa
