"""The backbone is frozen, so autograd does not look at it."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(256, 256), nn.ReLU())])
        self.head = nn.Linear(256, 10)

    def forward(self, x):
        return self.head(self.backbone(x))


def main():
    model = Classifier()
    model.backbone.requires_grad_(False)
    optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
    x, y = torch.randn(128, 256), torch.randint(0, 10, (128,))
    for _ in range(30):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
