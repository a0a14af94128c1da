"""GraphSAGE on a citation graph, full batch, without PyG."""
import time

import torch
import torch.nn.functional as F
from torch import nn

NUM_NODES, NUM_EDGES, IN_DIM, CLASSES = 1200, 9000, 128, 7


def make_graph():
    g = torch.Generator().manual_seed(0)
    edge_index = torch.randint(0, NUM_NODES, (2, NUM_EDGES), generator=g)
    x = torch.randn(NUM_NODES, IN_DIM, generator=g)
    y = torch.randint(0, CLASSES, (NUM_NODES,), generator=g)
    return x, edge_index, y


class SAGEConv(nn.Module):
    def __init__(self, in_dim, out_dim):
        super().__init__()
        self.lin_self = nn.Linear(in_dim, out_dim)
        self.lin_neigh = nn.Linear(in_dim, out_dim)

    def aggregate(self, x, edge_index):
        src, dst = edge_index
        out = []
        for node in range(x.size(0)):
            neighbours = src[dst == node]
            if len(neighbours) > 0:
                out.append(x[neighbours].mean(dim=0))
            else:
                out.append(torch.zeros_like(x[node]))
        return torch.stack(out)

    def forward(self, x, edge_index):
        return self.lin_self(x) + self.lin_neigh(self.aggregate(x, edge_index))


class SAGE(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.conv1 = SAGEConv(IN_DIM, hidden)
        self.conv2 = SAGEConv(hidden, CLASSES)

    def forward(self, x, edge_index):
        x = F.relu(self.conv1(x, edge_index))
        x = F.dropout(x, 0.5, self.training)
        return self.conv2(x, edge_index)


def main():
    torch.manual_seed(0)
    x, edge_index, y = make_graph()
    train_mask = torch.rand(NUM_NODES) < 0.6
    model = SAGE()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    begin = time.perf_counter()
    epochs = 30
    for epoch in range(1, epochs + 1):
        model.train()
        optimizer.zero_grad()
        out = model(x, edge_index)
        loss = F.cross_entropy(out[train_mask], y[train_mask])
        loss.backward()
        optimizer.step()
        if epoch % 10 == 0:
            acc = (out.argmax(1) == y)[~train_mask].float().mean()
            print(f"Epoch {epoch:03d} loss {loss.item():.4f} test {acc:.3f}")
    print(f"{(time.perf_counter() - begin) / epochs * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
