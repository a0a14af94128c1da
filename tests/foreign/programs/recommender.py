"""LightGCN of torch_geometric: recommendations from a graph of users and items, ranked pairs, sparse embeddings."""

import sys

import torch
from torch_geometric.nn import LightGCN

USERS, ITEMS = 60, 90


def edges() -> torch.Tensor:
    users, items = torch.randint(0, USERS, (600,)), torch.randint(USERS, USERS + ITEMS, (600,))
    return torch.cat([torch.stack([users, items]), torch.stack([items, users])], dim=1)


def train() -> None:
    net, graph = LightGCN(USERS + ITEMS, 32, num_layers=2).train(), edges()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(5):
        for chosen in torch.randperm(600).split(200):
            positive = graph[:, chosen]
            negative = torch.stack([positive[0], torch.randint(USERS, USERS + ITEMS, (200,))])
            ranks = net(graph, torch.cat([positive, negative], dim=1))
            loss = net.recommendation_loss(ranks[:200], ranks[200:], node_id=positive.unique())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@torch.no_grad()
def infer() -> None:
    net, graph = LightGCN(USERS + ITEMS, 32, num_layers=2).eval(), edges()
    for _ in range(5):
        net.recommend(graph, k=5, src_index=torch.arange(USERS), dst_index=torch.arange(USERS, USERS + ITEMS))


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
