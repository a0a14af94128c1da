"""The training data is read and parsed once."""

import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
torch.manual_seed(0)


class Table(Dataset):
    def __init__(self, path):
        rows = [[float(word) for word in line.split(",")] for line in Path(path).read_text().splitlines()]
        self.rows = torch.tensor(rows)

    def __len__(self):
        return len(self.rows)

    def __getitems__(self, places):
        return self.rows[places]


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_text("\n".join(",".join(f"{value:.4f}" for value in row) for row in torch.rand(4000, 17).tolist()))
        model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
        optimizer = torch.optim.Adam(model.parameters(), foreach=True)
        data = Table(path)
        for _ in range(8):
            for batch in DataLoader(data, batch_size=500, shuffle=True, collate_fn=lambda rows: rows):
                loss = nn.functional.mse_loss(model(batch[:, :16]), batch[:, 16:])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


main()
