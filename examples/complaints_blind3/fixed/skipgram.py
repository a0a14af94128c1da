"""word2vec with negative sampling in PyTorch."""
import time

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, DIM, WINDOW, NEG, BATCH = 150_000, 100, 5, 5, 512


class SkipGram(nn.Module):
    def __init__(self):
        super().__init__()
        self.center = nn.Embedding(VOCAB, DIM, sparse=True)
        self.context = nn.Embedding(VOCAB, DIM, sparse=True)
        nn.init.uniform_(self.center.weight, -0.5 / DIM, 0.5 / DIM)
        nn.init.zeros_(self.context.weight)

    def forward(self, center, context, negative):
        v = self.center(center)
        positive = F.logsigmoid((v * self.context(context)).sum(1))
        noise = F.logsigmoid(-(self.context(negative) @ v.unsqueeze(2)).squeeze(2)).sum(1)
        return -(positive + noise).mean()


class Corpus:
    def __init__(self, length):
        ranks = torch.rand(length).pow(3) * VOCAB
        self.tokens = ranks.long()

    def batch(self):
        at = torch.randint(WINDOW, len(self.tokens) - WINDOW, (BATCH,))
        offset = torch.randint(1, WINDOW + 1, (BATCH,)) * (torch.randint(0, 2, (BATCH,)) * 2 - 1)
        negative = torch.randint(0, VOCAB, (BATCH, NEG))
        return self.tokens[at], self.tokens[at + offset], negative


def main():
    torch.manual_seed(0)
    corpus = Corpus(2_000_000)
    model = SkipGram()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    steps, begin = 80, time.perf_counter()
    running = 0.0
    for step in range(1, steps + 1):
        loss = model(*corpus.batch())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
        if step % 20 == 0:
            print(f"{step} pairs {step * BATCH} loss {running / 20:.4f}")
            running = 0.0
    print(f"{(time.perf_counter() - begin) / steps * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
