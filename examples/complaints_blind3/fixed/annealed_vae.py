"""VAE with KL annealing under torch.compile (aot_eager, to rule inductor out)."""
import time

import torch
import torch._dynamo
import torch.nn.functional as F
from torch import nn

torch._dynamo.config.recompile_limit = 512
torch._dynamo.config.accumulated_recompile_limit = 2048


class VAE(nn.Module):
    def __init__(self, features=784, hidden=256, latent=32, warmup=500):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.mu = nn.Linear(hidden, latent)
        self.logvar = nn.Linear(hidden, latent)
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                                 nn.Linear(hidden, features))
        self.warmup = warmup
        self.register_buffer("iteration", torch.zeros(()))

    def beta(self):
        return (self.iteration / self.warmup).clamp(max=1.0)

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        recon = F.binary_cross_entropy_with_logits(self.dec(z), x, reduction="sum") / len(x)
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
        self.iteration += 1
        return recon + self.beta() * kl, recon, kl


def main():
    torch.manual_seed(0)
    data = (torch.rand(4096, 784) < 0.2).float()
    model = VAE()
    compiled = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    times = []
    for step in range(10):
        begin = time.perf_counter()
        x = data[torch.randint(0, len(data), (128,))]
        loss, recon, kl = compiled(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
        if step % 3 == 0:
            print(f"step {step} elbo {loss.item():.2f} kl {kl.item():.3f} {times[-1] * 1e3:.0f} ms")
    times = times[3:]
    print(f"{sum(times) / len(times) * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
