"""Bayesian personalised ranking for a web shop."""
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

USERS, ITEMS, NEGATIVES = 5000, 60_000, 8


class Purchases(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(0)
        self.users = rng.integers(0, USERS, count)
        self.items = rng.integers(0, ITEMS, count)

    def __len__(self):
        return len(self.users)

    def __getitem__(self, index):
        negatives = np.random.randint(0, ITEMS, NEGATIVES)
        return self.users[index], self.items[index], negatives


class BPR(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.user = nn.Embedding(USERS, dim, sparse=True)
        self.item = nn.Embedding(ITEMS, dim, sparse=True)
        nn.init.normal_(self.user.weight, std=0.01)
        nn.init.normal_(self.item.weight, std=0.01)

    def forward(self, users, positives, negatives):
        u = self.user(users).unsqueeze(1)
        positive = (u * self.item(positives).unsqueeze(1)).sum(-1)
        negative = (u * self.item(negatives)).sum(-1)
        return -F.logsigmoid(positive - negative).mean()


def main():
    torch.manual_seed(0)
    np.random.seed(0)
    loader = DataLoader(Purchases(6400), batch_size=128, shuffle=True)
    model = BPR()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    steps, begin = 0, time.perf_counter()
    for epoch in range(1):
        for users, positives, negatives in loader:
            loss = model(users, positives, negatives)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            if steps % 10 == 0:
                print(f"[{epoch}/{steps}] bpr {loss.item():.5f}")
    print(f"{(time.perf_counter() - begin) / steps * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
