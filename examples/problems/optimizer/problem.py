"""Adam updates each of two hundred parameters by itself."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


def main():
    model = nn.Sequential(*[nn.Linear(32, 32) for _ in range(100)])
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    batch = torch.randn(16, 32)
    for _ in range(30):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()  # problem


main()
