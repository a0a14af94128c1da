import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Expert(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim))

    def forward(self, x):
        return self.net(x)


class SparseMoE(nn.Module):
    def __init__(self, dim, hidden, num_experts=8, top_k=2):
        super().__init__()
        self.top_k = top_k
        self.gate = nn.Linear(dim, num_experts, bias=False)
        self.experts = nn.ModuleList([Expert(dim, hidden) for _ in range(num_experts)])

    def forward(self, x):
        logits = self.gate(x)
        top_logits, top_idx = logits.topk(self.top_k, dim=-1)
        weights = torch.zeros_like(logits).scatter(-1, top_idx, top_logits.softmax(dim=-1))
        y = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            rows = (top_idx == e).any(dim=1).nonzero().squeeze(1)
            y = y.index_add(0, rows, expert(x[rows]) * weights[rows, e, None])
        importance = logits.softmax(dim=-1).mean(0)
        load = (weights > 0).float().mean(0)
        return y, (importance * load).sum() * len(self.experts)


class MoEBlock(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.moe = SparseMoE(dim, hidden)

    def forward(self, x):
        y, aux = self.moe(self.norm(x))
        return x + y, aux


class HiggsNet(nn.Module):
    def __init__(self, n_features=28, dim=128, hidden=512, depth=3):
        super().__init__()
        self.stem = nn.Linear(n_features, dim)
        self.blocks = nn.ModuleList([MoEBlock(dim, hidden) for _ in range(depth)])
        self.head = nn.Linear(dim, 1)

    def forward(self, x):
        h, aux = self.stem(x), 0.0
        for block in self.blocks:
            h, a = block(h)
            aux = aux + a
        return self.head(h).squeeze(-1), aux


def main():
    torch.manual_seed(0)
    X = torch.randn(20000, 28)
    y = ((X[:, 0] * X[:, 1] + X[:, 2]) > 0).float()
    model = HiggsNet()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=1e-2)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f}M parameters")
    step, t0 = 0, time.time()
    for idx in torch.randperm(len(X)).split(512):
        logits, aux = model(X[idx])
        loss = F.binary_cross_entropy_with_logits(logits, y[idx]) + 0.01 * aux
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f} {(time.time() - t0) / 10 * 1000:.0f} ms/step")
            t0 = time.time()


if __name__ == "__main__":
    main()
