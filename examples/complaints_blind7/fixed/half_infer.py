"""Embed a corpus of documents with a text encoder; weights are loaded in half precision to save memory."""
import argparse
import time

import torch
from torch import nn
import torch.nn.functional as F


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class TextEncoder(nn.Module):
    def __init__(self, vocab=20000, dim=256, heads=8, depth=4):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(EncoderLayer(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)

    def forward(self, ids):
        x = self.tok(ids)
        for layer in self.layers:
            x = layer(x)
        return F.normalize(self.norm(x).mean(1), dim=-1)


def load_model(dtype):
    torch.manual_seed(0)
    model = TextEncoder()
    return model.to(dtype).eval()


def documents(n, batch, length):
    g = torch.Generator().manual_seed(1)
    for _ in range(n):
        yield torch.randint(0, 20000, (batch, length), generator=g)


@torch.inference_mode()
def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batches", type=int, default=30)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--length", type=int, default=64)
    args = p.parse_args()
    model = load_model(torch.float32)
    index = []
    t0 = time.time()
    for ids in documents(args.batches, args.batch, args.length):
        index.append(model(ids).float())
    matrix = torch.cat(index)
    sim = matrix[:10] @ matrix.T
    print(matrix.shape, sim.topk(3).indices[:2].tolist())
    print(f"{1000 * (time.time() - t0) / args.batches:.1f} ms/step")


if __name__ == "__main__":
    main()
