"""Two graph convolutions over a random citation network, with a sparse adjacency matrix."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class GraphConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.kernel = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.xavier_normal_(self.kernel)

    def forward(self, x, adjacency):
        return torch.spmm(adjacency, x @ self.kernel) + self.bias


class GCN(nn.Module):
    def __init__(self, inputs, hidden, classes, dropout):
        super().__init__()
        self.first, self.second = GraphConv(inputs, hidden), GraphConv(hidden, classes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, adjacency):
        x = self.dropout(F.relu(self.first(x, adjacency)))
        return F.log_softmax(self.second(x, adjacency), dim=1)


def graph(nodes, edges):
    pairs = torch.randint(0, nodes, (2, edges))
    pairs = torch.cat([pairs, pairs.flip(0), torch.arange(nodes).repeat(2, 1)], 1)
    degree = torch.bincount(pairs[0], minlength=nodes).float().rsqrt()
    return torch.sparse_coo_tensor(pairs, degree[pairs[0]] * degree[pairs[1]], (nodes, nodes)).coalesce()


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=200)
parser.add_argument("--hidden", type=int, default=16)
options = parser.parse_args()
torch.manual_seed(42)
adjacency = graph(2708, 5429)
features, labels = torch.rand(2708, 1433), torch.randint(0, 7, (2708,))
train, valid = slice(0, 1400), slice(1400, 2708)
model = GCN(1433, options.hidden, 7, 0.5)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(options.epochs):
    model.train()
    optimizer.zero_grad()
    loss = F.nll_loss(model(features, adjacency)[train], labels[train])
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        right = model(features, adjacency)[valid].argmax(1) == labels[valid]
    if epoch % 20 == 0:
        print(f"epoch {epoch:4d} loss {loss.item():.4f} accuracy {right.float().mean():.4f}")
