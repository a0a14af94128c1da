import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad_and_value, vmap

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
    named = dict(model.named_parameters())

    def sample_loss(params, xi, yi):
        out = functional_call(model, params, (xi.unsqueeze(0),))
        return F.binary_cross_entropy_with_logits(out, yi.unsqueeze(0))

    detached = {k: p.detach() for k, p in named.items()}
    grads, losses = vmap(grad_and_value(sample_loss), in_dims=(None, 0, 0))(detached, x, y)
    norm = torch.sqrt(sum(g.flatten(1).pow(2).sum(1) for g in grads.values()))
    coef = (MAX_GRAD_NORM / (norm + 1e-6)).clamp(max=1.0)
    for k, p in named.items():
        s = torch.einsum("b,b...->...", coef, grads[k])
        noise = torch.randn_like(s) * NOISE_MULTIPLIER * MAX_GRAD_NORM
        p.grad = (s + noise) / len(x)
    return losses.mean()


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
