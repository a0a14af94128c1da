"""Evaluate a two-tower product search: encode queries, score the catalogue, report recall at 10."""
import argparse
import time

import torch
from torch import nn


class QueryTower(nn.Module):
    def __init__(self, vocab=20_000, width=256, out=128):
        super().__init__()
        self.words = nn.EmbeddingBag(vocab, width, mode="mean")
        self.layers = nn.Sequential(
            nn.Linear(width, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, out)
        )

    def forward(self, words, offsets):
        return nn.functional.normalize(self.layers(self.words(words, offsets)), dim=-1)


class Catalogue:
    def __init__(self, size, dim=128):
        generator = torch.Generator().manual_seed(0)
        self.vectors = nn.functional.normalize(torch.randn(size, dim, generator=generator), dim=-1)
        self.in_stock = torch.rand(size, generator=generator) > 0.1

    def search(self, queries, k):
        scores = queries @ self.vectors.T
        scores = scores.masked_fill(~self.in_stock, -1.0)
        return scores.topk(k, dim=1).indices


def query_batches(count, size, vocab=20_000, seed=1):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        lengths = torch.randint(2, 9, (size,), generator=generator)
        words = torch.randint(vocab, (int(lengths.sum()),), generator=generator)
        offsets = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)[:-1]])
        relevant = torch.randint(0, 30_000, (size, 3), generator=generator)
        yield words, offsets, relevant


def recall(found, relevant):
    hits = (found.unsqueeze(-1) == relevant.unsqueeze(1)).any(dim=1)
    return hits.float().mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=90)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--items", type=int, default=30_000)
    args = parser.parse_args()

    torch.manual_seed(0)
    tower = QueryTower().eval()
    catalogue = Catalogue(args.items)
    total = torch.zeros(())
    started = time.perf_counter()
    with torch.inference_mode():
        for words, offsets, relevant in query_batches(args.batches, args.batch_size):
            queries = tower(words, offsets)
            found = catalogue.search(queries, k=10)
            total += recall(found, relevant)
    seconds = time.perf_counter() - started
    print(f"recall@10 {total / args.batches:.4f}")
    print(f"{seconds / args.batches * 1000:.1f} ms a batch")


if __name__ == "__main__":
    main()
