"""Texts are split into words and numbered once, before training."""

import random
import re

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
WORDS = [f"word{number}" for number in range(2000)]
NUMBERS = {word: number for number, word in enumerate(WORDS, start=1)}


class Texts(Dataset):
    def __init__(self, count):
        texts = [" ".join(random.choices(WORDS, k=200)) for _ in range(count)]
        rows = [[NUMBERS.get(word, 0) for word in re.findall(r"\w+", text.lower())][:128] for text in texts]
        self.rows = torch.tensor(rows)

    def __len__(self):
        return len(self.rows)

    def __getitems__(self, indices):
        return self.rows[indices]


def main():
    loader = DataLoader(Texts(800), batch_size=32, collate_fn=lambda rows: rows)
    model = nn.Sequential(nn.EmbeddingBag(2001, 32), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    for _ in range(3):
        for batch in loader:
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


main()
