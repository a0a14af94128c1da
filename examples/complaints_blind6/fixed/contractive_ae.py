"""Contractive autoencoder (Rifai et al. 2011) on digits."""
import time

import torch
from torch import nn


class ContractiveAE(nn.Module):
    def __init__(self, n_in=784, n_hidden=64):
        super().__init__()
        self.encoder = nn.Linear(n_in, n_hidden)
        self.decoder = nn.Linear(n_hidden, n_in)

    def encode(self, x):
        return torch.sigmoid(self.encoder(x))

    def forward(self, x):
        h = self.encode(x)
        return h, self.decoder(h)


def contractive_penalty(model, h, x):
    """Squared Frobenius norm of dh/dx, mean over the batch."""
    slope = (h * (1 - h)).pow(2)
    return (slope @ model.encoder.weight.pow(2).sum(1)).mean()


def make_digits(n):
    g = torch.Generator().manual_seed(7)
    strokes = torch.rand(10, 784, generator=g).lt(0.2).float()
    labels = torch.randint(0, 10, (n,), generator=g)
    noise = torch.rand(n, 784, generator=g)
    return (strokes[labels] * 0.8 + 0.2 * noise).clamp(0, 1)


def main():
    torch.manual_seed(0)
    model = ContractiveAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = make_digits(2560)
    lam = 1e-3
    for epoch in range(3):
        start = time.time()
        recon_sum = penalty_sum = 0.0
        for x in data[torch.randperm(len(data))].split(128):
            x = x.requires_grad_(True)
            h, logits = model(x)
            recon = nn.functional.binary_cross_entropy_with_logits(logits, x.detach(), reduction="sum") / len(x)
            penalty = contractive_penalty(model, h, x)
            loss = recon + lam * penalty
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            recon_sum += recon.item()
            penalty_sum += penalty.item()
        n = len(data) // 128
        print(f"epoch {epoch}: recon {recon_sum / n:.2f} contraction {penalty_sum / n:.3f} ({time.time() - start:.1f}s)")


if __name__ == "__main__":
    main()
