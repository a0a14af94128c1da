"""The number of the step is a tensor, so one compilation serves all steps."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
torch._dynamo.config.assume_static_by_default = True
torch._dynamo.config.automatic_dynamic_shapes = False
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))


@torch.compile(backend="eager")
def loss_of(batch, step):
    return model(batch).square().mean() * (1 + step)


def main():
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(32, 64)
    for step in range(7):
        optimizer.zero_grad()
        loss = loss_of(batch, torch.tensor(step))
        loss.backward()
        optimizer.step()


main()
