"""Turns texts to numbers with a regular expression in the collate function."""

import os
import re

import torch
from torch import nn
from torch.utils.data import DataLoader

FIX = os.environ.get("FIX") == "1"
TEXTS = [" ".join(f"word{(i * 7 + j * 13) % 997}, and" for j in range(60)) for i in range(640)]
WORDS = {}


def numbers(text):
    return torch.tensor(
        [WORDS.setdefault(w.lower(), len(WORDS) % 2000) for w in re.findall(r"\w+|[^\w\s]", text)][:120]
    )


READY = [numbers(one) for one in TEXTS] if FIX else None


def collate(indices):
    return torch.stack([READY[i] if FIX else numbers(TEXTS[i]) for i in indices])


def train():
    torch.manual_seed(0)
    model = nn.EmbeddingBag(2000, 16)
    head = nn.Linear(16, 2)
    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
    for _ in range(3):
        for batch in DataLoader(range(len(TEXTS)), batch_size=16, collate_fn=collate):
            loss = head(model(batch)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"{loss.item():.3f}")


train()
