"""Neural spline flows of zuko: densities learnt from samples; sampling."""

import sys

import torch
import zuko


def train() -> None:
    flow = zuko.flows.NSF(3, 5, transforms=2, hidden_features=(32, 32))
    optimizer = torch.optim.Adam(flow.parameters(), lr=1e-3)
    for _ in range(8):
        x, context = torch.randn(32, 3), torch.randn(32, 5)
        loss = -flow(context).log_prob(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def infer() -> None:
    flow = zuko.flows.MAF(3, 5, transforms=2, hidden_features=(32, 32))
    for _ in range(6):
        flow(torch.randn(5)).sample((16,))


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
