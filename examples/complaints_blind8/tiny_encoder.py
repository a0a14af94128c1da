"""Masked-token training of a small encoder, with a module logger for debugging."""
import argparse
import logging
import time

import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
logger = logging.getLogger("tiny_encoder")

VOCAB, MASK = 2000, 1


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.out(mixed.transpose(1, 2).reshape(b, t, w))


class Layer(nn.Module):
    def __init__(self, number, width, heads):
        super().__init__()
        self.number = number
        self.attention = Attention(width, heads)
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        attended = self.attention(self.norm1(x))
        logger.debug(f"layer {self.number}: attention output {attended}")
        x = x + attended
        hidden = self.mlp(self.norm2(x))
        logger.debug(f"layer {self.number}: mlp output {hidden}")
        return x + hidden


class Encoder(nn.Module):
    def __init__(self, width=128, heads=4, depth=4, length=64):
        super().__init__()
        self.words = nn.Embedding(VOCAB, width)
        self.places = nn.Parameter(torch.zeros(length, width))
        self.layers = nn.ModuleList(Layer(number, width, heads) for number in range(depth))
        self.head = nn.Linear(width, VOCAB)

    def forward(self, tokens):
        x = self.words(tokens) + self.places[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def masked(batch, generator):
    hidden = torch.rand(batch.shape, generator=generator) < 0.15
    return batch.masked_fill(hidden, MASK), batch.masked_fill(~hidden, -100)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch-size", type=int, default=8)
    args = parser.parse_args()

    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    corpus = torch.randint(2, VOCAB, (2048, 64), generator=generator)
    model = Encoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    started = time.perf_counter()
    for step in range(args.steps):
        rows = torch.randint(len(corpus), (args.batch_size,), generator=generator)
        tokens, targets = masked(corpus[rows], generator)
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            logger.info("step %d: loss %.3f", step, loss.item())
    logger.info("%.1f ms a step", (time.perf_counter() - started) / args.steps * 1000)


if __name__ == "__main__":
    main()
