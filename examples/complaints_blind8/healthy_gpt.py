"""Healthy: a character GPT with fused attention, a vectorised batch sampler and accumulation of two micro-batches."""
import argparse
import math
import time

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, t, w))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocab=96, width=192, heads=6, depth=3, length=128):
        super().__init__()
        self.length = length
        self.words = nn.Embedding(vocab, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)
        self.register_buffer("positions", torch.arange(length), persistent=False)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(self.positions[: tokens.shape[1]])
        return self.head(self.norm(self.blocks(x)))


def sample(data, size, length, generator):
    starts = torch.randint(len(data) - length - 1, (size, 1), generator=generator)
    rows = data[starts + torch.arange(length + 1)]
    return rows[:, :-1], rows[:, 1:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch-size", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    data = torch.randint(96, (500_000,), generator=generator)
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, foreach=True)
    started = time.perf_counter()
    for step in range(args.steps):
        for group in optimizer.param_groups:
            group["lr"] = 3e-4 * 0.5 * (1 + math.cos(math.pi * step / args.steps))
        optimizer.zero_grad(set_to_none=True)
        for _ in range(2):
            tokens, targets = sample(data, args.batch_size, model.length, generator)
            loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), targets.flatten()) / 2
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {2 * loss.item():.3f}")
    print(f"{(time.perf_counter() - started) / args.steps * 1000:.0f} ms a step")


if __name__ == "__main__":
    main()
