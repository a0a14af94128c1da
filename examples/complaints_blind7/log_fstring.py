"""Variational autoencoder with logging through the standard library."""
import argparse
import logging
import time

import torch
from torch import nn
import torch.nn.functional as F

log = logging.getLogger("vae")


class VAE(nn.Module):
    def __init__(self, pixels=784, hidden=400, latent=20):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(pixels, hidden), nn.ReLU())
        self.mu = nn.Linear(hidden, latent)
        self.logvar = nn.Linear(hidden, latent)
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, pixels))

    def encode(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        log.debug(f"encode: mu={mu} logvar={logvar}")
        return mu, logvar

    def reparameterize(self, mu, logvar):
        eps = torch.randn_like(mu)
        return mu + eps * torch.exp(0.5 * logvar)

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = self.reparameterize(mu, logvar)
        return self.dec(z), mu, logvar


def elbo(recon, x, mu, logvar):
    bce = F.binary_cross_entropy_with_logits(recon, x, reduction="sum")
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return (bce + kl) / len(x)


def batches(data, size):
    order = torch.randperm(len(data))
    for k in range(0, len(data) - size + 1, size):
        yield data[order[k:k + size]]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=12)
    p.add_argument("--batch", type=int, default=48)
    args = p.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    torch.manual_seed(0)
    data = torch.rand(4096, 784).round()
    model = VAE()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps = 0
    t0 = time.time()
    for epoch in range(args.epochs):
        total = 0.0
        for x in batches(data, args.batch):
            recon, mu, logvar = model(x)
            loss = elbo(recon, x, mu, logvar)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.detach()
            steps += 1
        log.info("epoch %d loss %.2f", epoch, float(total) * args.batch / len(data))
    print(f"{1000 * (time.time() - t0) / steps:.1f} ms/step")


if __name__ == "__main__":
    main()
