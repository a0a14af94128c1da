"""The compiled model looks at a number in its middle, so it falls into two graphs with Python between them."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(256, 256), nn.Linear(256, 256)

    def forward(self, x):
        x = torch.relu(self.first(x))
        if x.mean().item() > 1e6:  # problem
            raise ValueError("diverged")
        return torch.relu(self.second(x))


def main():
    model = torch.compile(Net(), backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(64, 256)
    for _ in range(20):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()


main()
