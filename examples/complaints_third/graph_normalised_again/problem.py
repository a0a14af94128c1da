"""The graph never changes, and every layer normalises it in every step."""

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


def normalised(links):
    links = links + torch.eye(len(links))
    scale = links.sum(1).rsqrt()
    return scale[:, None] * links * scale[None]


class GraphLayer(nn.Module):
    def __init__(self, width_in, width_out):
        super().__init__()
        self.linear = nn.Linear(width_in, width_out)

    def forward(self, x, links):
        return normalised(links) @ self.linear(x)  # problem


class GraphNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([GraphLayer(32, 32), GraphLayer(32, 32), GraphLayer(32, 7)])

    def forward(self, x, links):
        for layer in self.layers[:-1]:
            x = layer(x, links).relu()
        return self.layers[-1](x, links)


def main():
    nodes, links, wanted = torch.randn(700, 32), (torch.rand(700, 700) < 0.01).float(), torch.randint(0, 7, (700,))
    model = GraphNet()
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    for _ in range(40):
        loss = nn.functional.cross_entropy(model(nodes, links), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
