"""A variational autoencoder in Pyro: inference by samples whose names a handler follows; a posterior's predictions."""

import sys

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import SVI, Predictive, Trace_ELBO
from pyro.optim import Adam
from torch import nn


class Coder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.Softplus(), nn.Linear(48, 16))
        self.decoder = nn.Sequential(nn.Linear(8, 48), nn.Softplus(), nn.Linear(48, 64))

    def model(self, x: torch.Tensor) -> None:
        pyro.module("decoder", self.decoder)
        with pyro.plate("data", x.shape[0]):
            code = pyro.sample("code", dist.Normal(x.new_zeros(x.shape[0], 8), 1.0).to_event(1))
            pyro.sample("seen", dist.Bernoulli(logits=self.decoder(code)).to_event(1), obs=x)

    def guide(self, x: torch.Tensor) -> None:
        pyro.module("encoder", self.encoder)
        with pyro.plate("data", x.shape[0]):
            middle, spread = self.encoder(x).chunk(2, -1)
            pyro.sample("code", dist.Normal(middle, spread.exp()).to_event(1))


def train() -> None:
    coder = Coder()
    svi = SVI(coder.model, coder.guide, Adam({"lr": 1e-3}), loss=Trace_ELBO())
    for _ in range(10):
        svi.step(torch.rand(32, 64).round())


def infer() -> None:
    coder = Coder()
    predictive = Predictive(coder.model, guide=coder.guide, num_samples=6)
    for _ in range(3):
        predictive(torch.rand(16, 64).round())


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
