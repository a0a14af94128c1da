"""A Gaussian process of GPyTorch, fitted exactly as in its first example; predictions with fast variances."""

import math
import sys

import gpytorch
import torch

X = torch.linspace(0, 1, 200)
Y = torch.sin(X * 2 * math.pi) + 0.2 * torch.randn(200)


class Process(gpytorch.models.ExactGP):
    def __init__(self, likelihood: gpytorch.likelihoods.Likelihood) -> None:
        super().__init__(X, Y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def train() -> None:
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Process(likelihood).train()
    likelihood.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    fit = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    for _ in range(12):
        optimizer.zero_grad()
        loss = -fit(model(X), Y)
        loss.backward()
        optimizer.step()
        print(loss.item())


def infer() -> None:
    likelihood = gpytorch.likelihoods.GaussianLikelihood().eval()
    model = Process(likelihood).eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        for _ in range(6):
            likelihood(model(torch.rand(50))).variance


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
