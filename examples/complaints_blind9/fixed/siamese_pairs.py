"""Few-shot style training: an endless number of small batches drawn from a big table."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class Readings(Dataset):
    """Sensor snippets, one row each; two million of them from a memory-mapped table."""

    def __init__(self, rows=1_000_000, width=16):
        self.values = torch.randn(rows, width)
        self.device_id = torch.randint(0, 50, (rows,))

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return self.values[index], self.device_id[index]


class Encoder(nn.Module):
    def __init__(self, width=16, hidden=384, dim=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(width, hidden), nn.LayerNorm(hidden), nn.GELU(),
            nn.Linear(hidden, hidden), nn.LayerNorm(hidden), nn.GELU(),
            nn.Linear(hidden, hidden), nn.LayerNorm(hidden), nn.GELU(),
            nn.Linear(hidden, dim))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


def contrastive(z, labels, temperature=0.1):
    logits = z @ z.t() / temperature
    eye = torch.eye(len(z), dtype=torch.bool)
    logits = logits.masked_fill(eye, float("-inf"))
    same = (labels[:, None] == labels[None, :]) & ~eye
    log_prob = logits - logits.logsumexp(1, keepdim=True)
    per_row = log_prob.masked_fill(~same, 0).sum(1) / same.sum(1).clamp(min=1)
    return -per_row.mean()


def main(steps=90):
    torch.manual_seed(0)
    loader = DataLoader(Readings(), batch_size=512, shuffle=True, drop_last=True)
    encoder = Encoder()
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-3)
    smoothed = None
    batches = iter(loader)
    for step in range(steps):
        values, labels = next(batches)
        noisy = values + 0.1 * torch.randn_like(values)
        loss = contrastive(encoder(torch.cat([values, noisy])), labels.repeat(2))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        smoothed = loss.detach() if smoothed is None else 0.95 * smoothed + 0.05 * loss.detach()
        if step % 20 == 0:
            print(f"step {step}: loss {smoothed.item():.4f}")


if __name__ == "__main__":
    main()
