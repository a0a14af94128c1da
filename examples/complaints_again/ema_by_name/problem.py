"""A moving average of the weights is kept tensor by tensor, in every step."""

import copy

import torch
from torch import nn

torch.set_num_threads(1)


class Average:
    def __init__(self, model, decay=0.999):
        self.decay = decay
        self.model = copy.deepcopy(model).requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        current = model.state_dict()
        for name, kept in self.model.state_dict().items():
            if kept.dtype.is_floating_point:
                kept.mul_(self.decay).add_(current[name], alpha=1 - self.decay)  # problem


def network():
    layers = [nn.Linear(32, 64)]
    for _ in range(24):
        layers += [nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, 64)]
    return nn.Sequential(*layers, nn.Linear(64, 10))


def main():
    model = network()
    average = Average(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=True)
    for _ in range(60):
        images, labels = torch.randn(16, 32), torch.randint(0, 10, (16,))
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(model)


main()
