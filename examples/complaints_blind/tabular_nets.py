# fmt: off
import time
import torch
import torch.nn as nn


class Member(nn.Module):
    def __init__(self, n_in, hidden=24):
        super().__init__()
        self.fc1 = nn.Linear(n_in, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, 1)

    def forward(self, x):
        h = torch.relu(self.norm(self.fc1(x)))
        return self.fc3(torch.relu(self.fc2(h)))


class Committee(nn.Module):
    """Deep ensemble for the churn table."""

    def __init__(self, n_members=32, n_in=40):
        super().__init__()
        self.members = nn.ModuleList(Member(n_in) for _ in range(n_members))

    def forward(self, x):
        return torch.cat([m(x) for m in self.members], dim=1)


class LazyAdam:
    """Adam as in the paper, with per-tensor clipping."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, max_norm=1.0):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.max_norm = lr, betas, eps, max_norm
        self.m = [torch.zeros_like(p) for p in self.params]
        self.v = [torch.zeros_like(p) for p in self.params]
        self.t = 0

    @torch.no_grad()
    def step(self):
        self.t += 1
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            g = p.grad
            norm = g.norm().item()
            if norm > self.max_norm:
                g = g * (self.max_norm / norm)
            self.m[i] = b1 * self.m[i] + (1 - b1) * g
            self.v[i] = b2 * self.v[i] + (1 - b2) * g * g
            m_hat = self.m[i] / (1 - b1 ** self.t)
            v_hat = self.v[i] / (1 - b2 ** self.t)
            p -= self.lr * m_hat / (v_hat.sqrt() + self.eps)

    def zero_grad(self):
        for p in self.params:
            p.grad = None


def main():
    torch.manual_seed(0)
    table = torch.randn(8192, 40)
    churn = (table[:, :5].sum(1) > 0).float()
    model = Committee()
    opt = LazyAdam(model.parameters())
    t0 = time.perf_counter()
    for step in range(1, 241):
        rows = torch.randint(0, len(table), (64,))
        logits = model(table[rows])
        target = churn[rows][:, None].expand_as(logits)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 40 == 0:
            print(f"step {step}: bce {loss.item():.4f} ({(time.perf_counter() - t0) / step * 1e3:.1f} ms)")


if __name__ == "__main__":
    main()
# ruff: noqa
