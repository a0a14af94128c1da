"""Sequence tagger whose attention uses sparsemax (Martins & Astudillo) instead of softmax."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
VOCAB, DIM, HEADS, TAGS, SEQ = 3000, 128, 4, 17, 64


class Sparsemax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        ordered, _ = torch.sort(z, dim=-1, descending=True)
        k = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype)
        cumsum = ordered.cumsum(-1)
        support = (1 + k * ordered > cumsum).sum(-1, keepdim=True)
        tau = (cumsum.gather(-1, support - 1) - 1) / support
        p = torch.clamp(z - tau, min=0)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, grad_output):
        (p,) = ctx.saved_tensors
        s = (p > 0).to(p.dtype)
        jacobian = torch.diag_embed(s) - s.unsqueeze(-1) * s.unsqueeze(-2) / s.sum(-1)[..., None, None]
        return (jacobian @ grad_output.unsqueeze(-1)).squeeze(-1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.out = nn.Linear(DIM, DIM)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4)
        p = Sparsemax.apply(q @ k.transpose(-1, -2) / (d // HEADS) ** 0.5)
        return self.out((p @ v).transpose(1, 2).reshape(b, t, d))


class Tagger(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.attn = nn.ModuleList([Attention() for _ in range(layers)])
        self.ff = nn.ModuleList([nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM)) for _ in range(layers)])
        self.head = nn.Linear(DIM, TAGS)

    def forward(self, ids):
        x = self.embed(ids)
        for attn, ff in zip(self.attn, self.ff):
            x = x + attn(x)
            x = x + ff(x)
        return self.head(x)


ids = torch.randint(0, VOCAB, (1024, SEQ))
tags = ids % TAGS
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
start = time.time()
for step in range(1, 51):
    idx = torch.randint(0, len(ids), (8,))
    loss = F.cross_entropy(model(ids[idx]).flatten(0, 1), tags[idx].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.3f} {(time.time() - start) / step * 1e3:.1f} ms/step")
