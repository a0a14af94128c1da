"""Next-purchase model: each sample is the history of one customer, read from a table of transactions."""
import time

import numpy as np
import pandas as pd
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

ITEMS, CUSTOMERS, HISTORY = 3000, 4000, 20


def make_table(rows=200_000, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        "customer": rng.integers(0, CUSTOMERS, rows),
        "item": rng.integers(1, ITEMS, rows),
        "price": rng.gamma(2.0, 10.0, rows).astype("float32"),
        "day": rng.integers(0, 720, rows),
    }).sort_values("day", ignore_index=True)


class Purchases(Dataset):
    def __init__(self, table):
        self.table = table
        self.customers = np.sort(table["customer"].unique())

    def __len__(self):
        return len(self.customers)

    def __getitem__(self, i):
        rows = self.table[self.table["customer"] == self.customers[i]]
        items = rows["item"].to_numpy()[-HISTORY - 1:]
        price = rows["price"].to_numpy()[-HISTORY - 1:]
        pad = HISTORY + 1 - len(items)
        items = np.pad(items, (pad, 0))
        price = np.pad(price, (pad, 0))
        return torch.from_numpy(items[:-1]), torch.from_numpy(price[:-1]), int(items[-1])


class Model(nn.Module):
    def __init__(self, dim=96):
        super().__init__()
        self.emb = nn.Embedding(ITEMS, dim, padding_idx=0)
        self.gru = nn.GRU(dim + 1, 128, batch_first=True)
        self.out = nn.Linear(128, ITEMS)

    def forward(self, items, price):
        x = torch.cat([self.emb(items), torch.log1p(price).unsqueeze(-1)], -1)
        _, h = self.gru(x)
        return self.out(h[-1])


def main():
    torch.manual_seed(0)
    data = Purchases(make_table())
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=2, persistent_workers=True, drop_last=True)
    model = Model()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    t0 = time.time()
    for epoch in range(3):
        total = 0.0
        for items, price, target in loader:
            loss = F.cross_entropy(model(items, price), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.detach()
            step += 1
        print(f"epoch {epoch} loss {float(total) / len(loader):.4f}")
    print(f"{1000 * (time.time() - t0) / step:.1f} ms/step")


if __name__ == "__main__":
    main()
