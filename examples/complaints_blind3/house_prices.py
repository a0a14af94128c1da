"""House prices, a wide residual MLP on tabular data."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, 2 * width)
        self.fc2 = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.fc2(torch.relu(self.fc1(self.norm(x))))


class PriceNet(nn.Module):
    def __init__(self, columns=80, width=512, blocks=3):
        super().__init__()
        self.stem = nn.Linear(columns, width)
        self.blocks = nn.Sequential(*[ResidualBlock(width) for _ in range(blocks)])
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x))).squeeze(1)


def make_houses(count):
    x = torch.randn(count, 80)
    return TensorDataset(x, x[:, :10].sum(1) + x[:, 10] * x[:, 11])


def evaluate(model, loader):
    model.eval()
    total = 0.0
    with torch.inference_mode():
        for x, y in loader:
            total += nn.functional.mse_loss(model(x), y, reduction="sum").item()
    return total / len(loader.dataset)


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(make_houses(12_800), batch_size=512, shuffle=True)
    val_loader = DataLoader(make_houses(1_024), batch_size=512)
    model = PriceNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    steps, begin = 0, time.perf_counter()
    for epoch in range(3):
        model.train()
        for x, y in train_loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch} train {loss.item():.4f} val {evaluate(model, val_loader):.4f}")
    print(f"{(time.perf_counter() - begin) / steps * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
