"""Two layer GCN on a citation graph, full batch."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
N, EDGES, FEATS, HIDDEN, CLASSES = 4000, 12000, 500, 64, 7


def normalized_adjacency(edge_index, n):
    loops = torch.arange(n).repeat(2, 1)
    index = torch.cat([edge_index, edge_index.flip(0), loops], dim=1)
    adj = torch.sparse_coo_tensor(index, torch.ones(index.shape[1]), (n, n)).coalesce()
    row, col = adj.indices()
    deg = torch.zeros(n).index_add_(0, row, adj.values()).pow(-0.5)
    return torch.sparse_coo_tensor(adj.indices(), deg[row] * adj.values() * deg[col], (n, n)).coalesce()


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_features, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adj):
        support = x @ self.weight
        return adj.to_dense() @ support + self.bias


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.gc1 = GraphConvolution(FEATS, HIDDEN)
        self.gc2 = GraphConvolution(HIDDEN, CLASSES)

    def forward(self, x, adj):
        x = F.dropout(F.relu(self.gc1(x, adj)), 0.5, self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


def accuracy(output, labels):
    return (output.argmax(1) == labels).float().mean().item()


features = torch.rand(N, FEATS)
labels = torch.randint(0, CLASSES, (N,))
adj = normalized_adjacency(torch.randint(0, N, (2, EDGES)), N)
idx_train, idx_val = torch.arange(0, 1400), torch.arange(2000, 3000)

model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
start = time.time()
for epoch in range(1, 41):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss = F.nll_loss(output[idx_train], labels[idx_train])
    loss.backward()
    optimizer.step()
    if epoch % 10 == 0:
        acc = accuracy(output.detach()[idx_val], labels[idx_val])
        print(f"Epoch {epoch:03d} loss {loss.item():.4f} val {acc:.3f} {(time.time() - start) / epoch * 1e3:.1f} ms/epoch")
