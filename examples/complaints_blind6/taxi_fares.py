"""Predict the fare of a taxi trip; embeddings for hour and weekday."""
import io
import math
import time

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def fake_csv(n=6000):
    rng = np.random.default_rng(0)
    start = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 180 * 86400, n), unit="s")
    xy = rng.normal([-73.98, 40.75], 0.03, (n, 2)).round(5)
    dxy = (xy + rng.normal(0, 0.02, (n, 2))).round(5)
    fare = 3 + 220 * np.abs(dxy - xy).sum(1) + rng.exponential(1.0, n) + (start.hour > 20)
    df = pd.DataFrame({"pickup_datetime": start.strftime("%Y-%m-%d %H:%M:%S"), "pickup_lon": xy[:, 0], "pickup_lat": xy[:, 1],
                       "dropoff_lon": dxy[:, 0], "dropoff_lat": dxy[:, 1], "passengers": rng.integers(1, 6, n), "fare": fare.round(2)})
    return io.StringIO(df.to_csv(index=False))


def haversine(lon1, lat1, lon2, lat2):
    lon1, lat1, lon2, lat2 = map(math.radians, (lon1, lat1, lon2, lat2))
    a = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    return 12742 * math.asin(math.sqrt(a))


class TaxiDataset(Dataset):
    def __init__(self, file):
        self.trips = pd.read_csv(file).to_dict("records")

    def __len__(self):
        return len(self.trips)

    def __getitem__(self, i):
        trip = self.trips[i]
        when = pd.to_datetime(trip["pickup_datetime"])
        km = haversine(trip["pickup_lon"], trip["pickup_lat"], trip["dropoff_lon"], trip["dropoff_lat"])
        cats = np.array([when.hour, when.dayofweek, when.month], dtype=np.int64)
        cont = np.array([km, (trip["pickup_lon"] + 73.98) * 30, (trip["pickup_lat"] - 40.75) * 30,
                         trip["passengers"] / 5], dtype=np.float32)
        return cats, cont, np.float32(trip["fare"])


class FareNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embs = nn.ModuleList([nn.Embedding(24, 12), nn.Embedding(7, 4), nn.Embedding(13, 6)])
        self.mlp = nn.Sequential(nn.Linear(26, 400), nn.ReLU(), nn.BatchNorm1d(400),
                                 nn.Linear(400, 200), nn.ReLU(), nn.BatchNorm1d(200), nn.Linear(200, 1))

    def forward(self, cats, cont):
        x = torch.cat([emb(cats[:, i]) for i, emb in enumerate(self.embs)] + [cont], dim=1)
        return self.mlp(x).squeeze(1)


def main():
    torch.manual_seed(0)
    loader = DataLoader(TaxiDataset(fake_csv()), batch_size=256, shuffle=True, drop_last=True)
    model = FareNet()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        start, losses = time.time(), []
        for cats, cont, fare in loader:
            loss = nn.functional.smooth_l1_loss(model(cats, cont), fare)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        print(f"epoch {epoch} loss {np.mean(losses):.3f} took {time.time() - start:.2f}s")


if __name__ == "__main__":
    main()
