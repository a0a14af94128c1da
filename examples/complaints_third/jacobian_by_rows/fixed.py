"""All rows of a Jacobian are computed together."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


def jacobian(outputs, inputs):
    each = torch.eye(outputs.shape[1])[:, None].expand(-1, *outputs.shape)
    return torch.autograd.grad(outputs, inputs, each, is_grads_batched=True)[0].transpose(0, 1)


def main():
    model = nn.Sequential(nn.Linear(24, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 24))
    total = 0.0
    for _ in range(20):
        inputs = torch.randn(64, 24, requires_grad=True)
        total += jacobian(model(inputs), inputs).square().mean().item()
    print(total)


main()
