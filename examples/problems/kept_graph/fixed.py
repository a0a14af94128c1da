"""The losses are kept as numbers without their graph."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


def main():
    model = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    losses = []
    for _ in range(30):
        batch = torch.randn(128, 128)
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        validation = model(batch).square().mean()
        losses.append(validation.detach())
    print(f"mean loss {torch.stack(losses).mean():.3f}")


main()
