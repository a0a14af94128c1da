"""The sum of several losses goes back through the network once."""

import torch
from torch import nn

torch.set_num_threads(1)


def main():
    trunk = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )
    heads = nn.ModuleList(nn.Linear(32, 5) for _ in range(4))
    parameters = [*trunk.parameters(), *heads.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.01, momentum=0.9)
    for _ in range(15):
        images, labels = torch.randn(8, 3, 32, 32), torch.randint(0, 5, (4, 8))
        optimizer.zero_grad()
        features = trunk(images)
        losses = [
            nn.functional.cross_entropy(head(features), of_head) for head, of_head in zip(heads, labels, strict=True)
        ]
        sum(losses).backward()
        optimizer.step()


main()
