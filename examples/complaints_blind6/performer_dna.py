"""Promoter detection in DNA windows with linear attention (elu + 1 feature map)."""
import time

import torch
import torch.nn.functional as F
from torch import nn


class LinearAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        sim = q @ k.transpose(-2, -1)
        out = sim @ v / (sim.sum(-1, keepdim=True) + 1e-6)
        return self.proj(out.transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = LinearAttention(dim, heads)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.ff(self.norm2(x))


class PromoterNet(nn.Module):
    def __init__(self, length, dim=64, heads=4, depth=2):
        super().__init__()
        self.embed = nn.Embedding(5, dim)
        self.pos = nn.Parameter(torch.zeros(length, dim))
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.head = nn.Linear(dim, 2)

    def forward(self, seq):
        x = self.blocks(self.embed(seq) + self.pos)
        return self.head(x.mean(1))


def sample_batch(n, length, g):
    seq = torch.randint(0, 4, (n, length), generator=g)
    label = torch.randint(0, 2, (n,), generator=g)
    for row in label.nonzero().flatten().tolist():
        at = torch.randint(0, length - 60, (1,), generator=g).item()
        seq[row, at:at + 60] = torch.tensor([3, 0, 3, 0, 0, 0]).repeat(10)
    return seq, label


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    length = 1024
    model = PromoterNet(length)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    t = time.time()
    for step in range(1, 21):
        seq, label = sample_batch(4, length, g)
        loss = F.cross_entropy(model(seq), label)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 5 == 0:
            print(f"step {step} loss {loss.item():.4f} {(time.time() - t) / 5:.3f} s/step")
            t = time.time()


if __name__ == "__main__":
    main()
