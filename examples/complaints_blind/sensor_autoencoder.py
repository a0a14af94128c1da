# fmt: off
import time
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, BatchSampler, RandomSampler


class SensorAE(nn.Module):
    def __init__(self, n_in=768, width=1024, code=64):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(n_in, width), nn.SiLU(), nn.Linear(width, code))
        self.dec = nn.Sequential(nn.Linear(code, width), nn.SiLU(), nn.Linear(width, n_in))

    def forward(self, x):
        return self.dec(self.enc(x))


def recordings(n=6000, n_in=768):
    g = torch.Generator().manual_seed(4)
    basis = torch.randn(32, n_in, generator=g)
    return torch.randn(n, 32, generator=g) @ basis / 6


@torch.no_grad()
def validate(model, x):
    model.eval()
    err = nn.functional.mse_loss(model(x), x).item()
    model.train()
    return err


def main():
    torch.manual_seed(0)
    data = recordings()
    train, val = data[:-256], data[-256:]
    dataset = TensorDataset(train)
    sampler = BatchSampler(RandomSampler(dataset), batch_size=256, drop_last=True)
    loader = DataLoader(dataset, sampler=sampler, batch_size=None)
    model = SensorAE()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    step, t0 = 0, time.perf_counter()
    for epoch in range(8):
        for (x,) in loader:
            loss = nn.functional.mse_loss(model(x), x)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            step += 1
        print(f"epoch {epoch} train {loss.item():.4f} val {validate(model, val):.4f} "
              f"{(time.perf_counter() - t0) / step * 1e3:.0f} ms/step")


if __name__ == "__main__":
    main()
# ruff: noqa
