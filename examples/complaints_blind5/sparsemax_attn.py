import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function


class SparsemaxFunction(Function):
    @staticmethod
    def forward(ctx, z):
        z = z - z.max(dim=-1, keepdim=True).values
        z_sorted, _ = z.sort(dim=-1, descending=True)
        k = torch.arange(1, z.size(-1) + 1, device=z.device, dtype=z.dtype)
        cumsum = z_sorted.cumsum(-1)
        support = (1 + k * z_sorted > cumsum).to(z.dtype).sum(-1, keepdim=True)
        tau = (cumsum.gather(-1, support.long() - 1) - 1) / support
        p = (z - tau).clamp(min=0)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, grad_output):
        (p,) = ctx.saved_tensors
        s = (p > 0).to(p.dtype)
        outer = s.unsqueeze(-1) * s.unsqueeze(-2)
        jacobian = torch.diag_embed(s) - outer / s.sum(-1)[..., None, None]
        return torch.matmul(jacobian, grad_output.unsqueeze(-1)).squeeze(-1)


class SparseSelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)
        attn = SparsemaxFunction.apply(scores)
        return self.proj((attn @ v).transpose(1, 2).reshape(b, t, d))


class Tagger(nn.Module):
    def __init__(self, vocab=5000, dim=128, heads=4, layers=2, tags=20):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.randn(1, 512, dim) * 0.02)
        self.norms = nn.ModuleList([nn.LayerNorm(dim) for _ in range(layers)])
        self.attns = nn.ModuleList([SparseSelfAttention(dim, heads) for _ in range(layers)])
        self.ffs = nn.ModuleList([nn.Sequential(nn.Linear(dim, 512), nn.GELU(), nn.Linear(512, dim)) for _ in range(layers)])
        self.out = nn.Linear(dim, tags)

    def forward(self, ids):
        x = self.emb(ids) + self.pos[:, : ids.size(1)]
        for norm, attn, ff in zip(self.norms, self.attns, self.ffs):
            x = x + attn(norm(x))
            x = x + ff(x)
        return self.out(x)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    tic = time.time()
    for it in range(1, 41):
        ids = torch.randint(0, 5000, (8, 96))
        logits = model(ids)
        loss = F.cross_entropy(logits.view(-1, 20), (ids % 20).view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if it % 10 == 0:
            print(f"iter {it} loss {loss.item():.3f} {(time.time() - tic) / 10:.3f} s/iter")
            tic = time.time()
