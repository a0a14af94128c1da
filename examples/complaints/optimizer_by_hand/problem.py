"""The optimizer is written by hand and goes through the parameters one by one."""

import torch
from torch import nn

torch.set_num_threads(1)


class Sgd:
    """Momentum by hand, parameter by parameter, as in many repositories."""

    def __init__(self, parameters):
        self.parameters = list(parameters)
        self.moments = [torch.zeros_like(one) for one in self.parameters]

    @torch.no_grad()
    def step(self):
        for one, moment in zip(self.parameters, self.moments, strict=True):
            moment.mul_(0.9).add_(one.grad)  # problem
            one.sub_(0.01 * moment)

    def zero_grad(self):
        for one in self.parameters:
            one.grad = None


def main():
    net = nn.Sequential(*[nn.Linear(24, 24) for _ in range(60)])
    optimizer = Sgd(net.parameters())
    x = torch.randn(8, 24)
    for _ in range(25):
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
