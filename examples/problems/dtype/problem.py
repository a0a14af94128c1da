"""The norm goes from bfloat16 to float32 and back around each of its operators."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, dtype=torch.bfloat16))

    def forward(self, x):
        mean = x.float().square().mean(-1, keepdim=True).to(torch.bfloat16)  # problem
        x = (x.float() * mean.float().add(1e-6).rsqrt()).to(torch.bfloat16)
        return (x.float() * self.weight.float()).to(torch.bfloat16)


def main():
    model = nn.Sequential(*[Norm(256) for _ in range(4)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(512, 256, dtype=torch.bfloat16)
    for _ in range(20):
        optimizer.zero_grad()
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()


main()
