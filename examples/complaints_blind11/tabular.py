"""Predict house energy demand from 48 weather and building features. Everything fits in memory."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

N, FEATURES = 120_000, 48
BATCH = 4096
EPOCHS = 9


def make_data():
    g = torch.Generator().manual_seed(3)
    x = torch.randn(N, FEATURES, generator=g)
    w = torch.randn(FEATURES, 1, generator=g) / FEATURES**0.5
    y = torch.sin(x @ w) + 0.3 * x[:, :1] * x[:, 1:2] + 0.05 * torch.randn(N, 1, generator=g)
    return TensorDataset(x, y)


model = nn.Sequential(
    nn.Linear(FEATURES, 192),
    nn.SiLU(),
    nn.Linear(192, 192),
    nn.SiLU(),
    nn.Linear(192, 1),
)

dataset = make_data()
train_set, valid_set = random_split(dataset, [N - 20_000, 20_000], generator=torch.Generator().manual_seed(0))
train_loader = DataLoader(train_set, batch_size=BATCH, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=BATCH)

optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
loss_fn = nn.MSELoss()

for epoch in range(EPOCHS):
    t0 = time.perf_counter()
    model.train()
    for xb, yb in train_loader:
        pred = model(xb)
        loss = loss_fn(pred, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()

    model.eval()
    with torch.no_grad():
        errors = [loss_fn(model(xb), yb).item() for xb, yb in valid_loader]
    print(f"{epoch:3d}  train {loss.item():.4f}  valid {sum(errors) / len(errors):.4f}  "
          f"{time.perf_counter() - t0:.2f} s", flush=True)
