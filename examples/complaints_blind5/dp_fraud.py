import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(42)

BATCH = 128
MAX_GRAD_NORM = 1.0
NOISE_MULTIPLIER = 1.1


class FraudMLP(nn.Module):
    def __init__(self, n_in=30, hidden=(128, 64)):
        super().__init__()
        self.fc1 = nn.Linear(n_in, hidden[0])
        self.fc2 = nn.Linear(hidden[0], hidden[1])
        self.fc3 = nn.Linear(hidden[1], 1)

    def forward(self, x):
        x = torch.tanh(self.fc1(x))
        x = torch.tanh(self.fc2(x))
        return self.fc3(x).squeeze(-1)


def clipped_noisy_grads(model, x, y):
    params = list(model.parameters())
    summed = [torch.zeros_like(p) for p in params]
    total = 0.0
    for xi, yi in zip(x, y):
        loss = F.binary_cross_entropy_with_logits(model(xi.unsqueeze(0)), yi.unsqueeze(0))
        grads = torch.autograd.grad(loss, params)
        norm = torch.sqrt(sum(g.pow(2).sum() for g in grads))
        coef = (MAX_GRAD_NORM / (norm + 1e-6)).clamp(max=1.0)
        for s, g in zip(summed, grads):
            s.add_(g * coef)
        total += loss.detach()
    for p, s in zip(params, summed):
        noise = torch.randn_like(s) * NOISE_MULTIPLIER * MAX_GRAD_NORM
        p.grad = (s + noise) / len(x)
    return total / len(x)


def main():
    X = torch.randn(20000, 30)
    y = (X[:, :5].sum(1) + 0.5 * torch.randn(20000) > 3).float()
    model = FraudMLP()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    t0 = time.time()
    for step in range(1, 121):
        idx = torch.randint(0, len(X), (BATCH,))
        loss = clipped_noisy_grads(model, X[idx], y[idx])
        optimizer.step()
        optimizer.zero_grad()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.4f}  {20 / (time.time() - t0):.1f} it/s")
            t0 = time.time()
    with torch.no_grad():
        acc = ((model(X) > 0).float() == y).float().mean()
    print(f"accuracy {acc.item():.4f}")


if __name__ == "__main__":
    main()
