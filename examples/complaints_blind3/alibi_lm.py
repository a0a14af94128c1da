"""Character model with ALiBi instead of position embeddings."""
import math
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

VOCAB, DIM, HEADS, SEQ = 96, 128, 8, 384


def alibi_bias(heads, seq):
    slopes = np.array([2 ** (-8 * (h + 1) / heads) for h in range(heads)])
    distance = np.arange(seq)[None, :] - np.arange(seq)[:, None]
    bias = slopes[:, None, None] * distance[None]
    bias[:, np.triu_indices(seq, 1)[0], np.triu_indices(seq, 1)[1]] = -np.inf
    return torch.from_numpy(bias)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)
        self.register_buffer("bias", alibi_bias(HEADS, SEQ))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(DIM // HEADS)
        scores = scores + self.bias[:, :t, :t]
        weights = F.softmax(scores, dim=-1).type_as(v)
        return self.proj((weights @ v).transpose(1, 2).reshape(b, t, DIM))


class Model(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.norms = nn.ModuleList(nn.LayerNorm(DIM) for _ in range(2 * layers))
        self.attns = nn.ModuleList(Attention() for _ in range(layers))
        self.mlps = nn.ModuleList(
            nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM)) for _ in range(layers))
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, ids):
        x = self.embed(ids)
        for i, (attn, mlp) in enumerate(zip(self.attns, self.mlps)):
            x = x + attn(self.norms[2 * i](x))
            x = x + mlp(self.norms[2 * i + 1](x))
        return self.head(x)


def main():
    torch.manual_seed(0)
    text = torch.randint(0, VOCAB, (100_000,))
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    steps, begin = 12, time.perf_counter()
    for step in range(steps):
        start = torch.randint(0, len(text) - SEQ - 1, (8,))
        ids = torch.stack([text[s:s + SEQ + 1] for s in start])
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 3 == 0:
            print(f"iter {step} loss {loss.item():.4f}")
    print(f"{(time.perf_counter() - begin) / steps * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
