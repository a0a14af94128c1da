"""A neural differential equation of torchdiffeq: gradients through the solver and by the adjoint method."""

import sys

import torch
from torch import nn
from torchdiffeq import odeint, odeint_adjoint


class Field(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.net(y**3)


def train() -> None:
    field, times = Field(), torch.linspace(0.0, 1.0, 8)
    optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-3)
    for step in range(8):
        solve = odeint_adjoint if step % 2 else odeint
        loss = (solve(field, torch.randn(20, 2), times) - 1).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def infer() -> None:
    field = Field()
    for _ in range(6):
        odeint(field, torch.randn(20, 2), torch.linspace(0.0, 5.0, 20), method="rk4")


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
