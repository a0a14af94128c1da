"""Sample text from a small decoder with a KV cache, batch of prompts, top-k sampling."""
import argparse
import time

import torch
from torch import nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x, cache, pos):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        cache[0][:, :, pos:pos + t] = k
        cache[1][:, :, pos:pos + t] = v
        y = F.scaled_dot_product_attention(q, cache[0][:, :, :pos + t], cache[1][:, :, :pos + t], is_causal=t > 1)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, cache, pos):
        x = x + self.attn(self.n1(x), cache, pos)
        return x + self.mlp(self.n2(x))


class Decoder(nn.Module):
    def __init__(self, vocab=50257, dim=256, heads=8, depth=6, ctx=512):
        super().__init__()
        self.dim, self.heads = dim, heads
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(ctx, dim)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)

    def new_cache(self, batch, length):
        shape = (batch, self.heads, length, self.dim // self.heads)
        return [(torch.zeros(shape), torch.zeros(shape)) for _ in self.layers]

    def forward(self, ids, caches, pos):
        x = self.tok(ids) + self.pos(torch.arange(pos, pos + ids.shape[1]))
        for layer, cache in zip(self.layers, caches):
            x = layer(x, cache, pos)
        return self.norm(x[:, -1]) @ self.tok.weight.T


def sample(logits, k, temperature):
    logits = logits / temperature
    values, indices = torch.topk(logits, k, dim=-1)
    probs = F.softmax(values, -1)
    pick = torch.multinomial(probs, 1)
    return indices.gather(1, pick)


@torch.inference_mode()
def main():
    p = argparse.ArgumentParser()
    p.add_argument("--new", type=int, default=100)
    p.add_argument("--batch", type=int, default=16)
    args = p.parse_args()
    torch.manual_seed(0)
    model = Decoder().eval()
    ids = torch.randint(0, 50257, (args.batch, 32))
    caches = model.new_cache(args.batch, 32 + args.new)
    text = [ids]
    pos = 0
    t0 = time.time()
    for _ in range(args.new):
        logits = model(ids, caches, pos)
        pos += ids.shape[1]
        ids = sample(logits, 40, 0.8)
        text.append(ids)
    print(torch.cat(text, 1).shape, f"{1000 * (time.time() - t0) / args.new:.1f} ms/step")


if __name__ == "__main__":
    main()
