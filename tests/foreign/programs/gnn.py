"""Graph networks of torch_geometric: a GIN over batches of graphs, pooled; attention over one graph at inference."""

import sys

import torch
from torch_geometric.datasets import FakeDataset
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GAT, GIN, global_add_pool


def graphs(count: int) -> FakeDataset:
    return FakeDataset(num_graphs=count, avg_num_nodes=40, avg_degree=4, num_channels=16, num_classes=4)


def train() -> None:
    net, head = GIN(16, 32, num_layers=3).train(), torch.nn.Linear(32, 4)
    optimizer = torch.optim.Adam([*net.parameters(), *head.parameters()], lr=0.01)
    for batch in DataLoader(graphs(64), batch_size=8, shuffle=True):
        scores = head(global_add_pool(net(batch.x, batch.edge_index), batch.batch))
        loss = torch.nn.functional.cross_entropy(scores, batch.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def infer() -> None:
    net = GAT(16, 32, num_layers=2, out_channels=4, heads=4, v2=True).eval()
    graph = graphs(1)[0]
    for _ in range(5):
        net(graph.x, graph.edge_index).argmax(-1)


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
