"""Crop-type classification from a year of satellite bands, one row of a wide table per field."""
import re
import time

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

MONTHS = 12
BANDS = ["B02", "B03", "B04", "B08", "B11", "B12", "VV", "VH", "TEMP", "RAIN"]
CROPS = ["maize", "wheat", "soy", "rape", "grass"]


def read_table(n=3600, seed=0):
    """The real table is a parquet file with columns such as 'S2-B08-ts7-10m'."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, len(CROPS), n)
    cols = {}
    for b, band in enumerate(BANDS):
        phase = np.sin(np.arange(MONTHS) / 2 + b)[None] * (1 + label[:, None])
        values = phase + rng.normal(size=(n, MONTHS))
        for t in range(MONTHS):
            sensor = "S1" if band.startswith("V") else "S2" if band.startswith("B") else "ERA5"
            cols[f"{sensor}-{band}-ts{t}-10m"] = values[:, t]
    table = pd.DataFrame(cols)
    table["crop"] = [CROPS[i] for i in label]
    table["lat"], table["lon"] = rng.uniform(40, 60, n), rng.uniform(-5, 25, n)
    return table


class FieldDataset(Dataset):
    COLUMN = re.compile(r"^(S1|S2|ERA5)-(\w+)-ts(\d+)-\d+m$")

    def __init__(self, table):
        self.columns = {band: [] for band in BANDS}
        for name in table.columns:
            m = self.COLUMN.match(name)
            if m:
                self.columns[m.group(2)].append((int(m.group(3)), name))
        self.mean, self.std = 0.0, 2.5
        order = [name for band in BANDS for _, name in sorted(self.columns[band])]
        wide = table[order].to_numpy(dtype=np.float32).reshape(len(table), len(BANDS), MONTHS)
        self.x = (wide.transpose(0, 2, 1).copy() - self.mean) / self.std
        self.place = (table[["lat", "lon"]].to_numpy() / [90, 180]).astype(np.float32)
        self.label = table["crop"].map(CROPS.index).to_numpy()

    def __len__(self):
        return len(self.label)

    def __getitem__(self, idx):
        return self.x[idx], self.place[idx], self.label[idx]


class Presto(nn.Module):
    def __init__(self, dim=96, layers=3):
        super().__init__()
        self.inp = nn.Linear(len(BANDS), dim)
        self.place = nn.Linear(2, dim)
        self.pos = nn.Parameter(torch.randn(MONTHS, dim) * 0.02)
        block = nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.head = nn.Linear(dim, len(CROPS))

    def forward(self, x, place):
        h = self.inp(x) + self.pos + self.place(place)[:, None]
        return self.head(self.encoder(h).mean(1))


def main(epochs=1):
    torch.manual_seed(0)
    loader = DataLoader(FieldDataset(read_table()), batch_size=64, shuffle=True, drop_last=True)
    model = Presto()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    start = time.time()
    for epoch in range(epochs):
        for step, (x, place, y) in enumerate(loader):
            logits = model(x, place)
            loss = nn.functional.cross_entropy(logits, y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if step % 20 == 19:
                print(f"{epoch}/{step + 1} loss {loss.item():.3f} {time.time() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
