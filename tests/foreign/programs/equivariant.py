"""Equivariant networks of e3nn, which writes its products as TorchScript; points turned and classified."""

import sys

import torch
from e3nn import o3
from e3nn.nn.models.v2106.gate_points_networks import SimpleNetwork


def model() -> SimpleNetwork:
    return SimpleNetwork("0e", "4x0e", max_radius=1.5, num_neighbors=2.0, num_nodes=4.0, mul=4, layers=1, lmax=1)


def points() -> dict[str, torch.Tensor]:
    places = torch.rand(32, 3) @ o3.rand_matrix().T
    return {"pos": places, "x": torch.ones(32, 1), "batch": torch.arange(8).repeat_interleave(4)}


def train() -> None:
    net = model().train()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(6):
        loss = torch.nn.functional.cross_entropy(net(points()), torch.randint(0, 4, (8,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def infer() -> None:
    net = model().eval()
    for _ in range(6):
        net(points()).argmax(-1)


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
