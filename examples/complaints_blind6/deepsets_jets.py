"""Top tagging with Deep Sets over the particles of a jet."""
import time

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler


class Jets(Dataset):
    def __init__(self, n, particles, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, 2, (n,), generator=g).float()
        count = torch.randint(particles // 2, particles + 1, (n,), generator=g)
        self.mask = torch.arange(particles) < count.unsqueeze(1)
        pt = torch.rand(n, particles, generator=g).pow(3)
        spread = 0.2 + 0.1 * self.labels
        eta_phi = spread.view(n, 1, 1) * torch.randn(n, particles, 2, generator=g)
        self.features = torch.cat([pt.unsqueeze(-1), pt.clamp(min=1e-4).log().unsqueeze(-1), eta_phi], dim=-1)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, idx):
        return self.features[idx], self.mask[idx], self.labels[idx]


def mlp(*dims):
    layers = []
    for a, b in zip(dims, dims[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class DeepSets(nn.Module):
    def __init__(self, n_features=4, width=128):
        super().__init__()
        self.phi = mlp(n_features, width, width, width)
        self.rho = mlp(width, width, 1)

    def forward(self, x, mask):
        h = self.phi(x) * mask.unsqueeze(-1)
        return self.rho(h.sum(1) / mask.sum(1, keepdim=True)).squeeze(-1)


def main():
    torch.manual_seed(0)
    data = Jets(12000, 40)
    sampler = BatchSampler(RandomSampler(data), batch_size=256, drop_last=True)
    loader = DataLoader(data, sampler=sampler, batch_size=None)
    model = DeepSets()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_fn = nn.BCEWithLogitsLoss()
    for epoch in range(2):
        begin, correct, seen = time.time(), 0, 0
        for x, mask, y in loader:
            logits = model(x, mask)
            loss = loss_fn(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            correct += ((logits.detach() > 0) == y.bool()).sum().item()
            seen += len(y)
        print(f"epoch {epoch} acc {correct / seen:.3f} loss {loss.item():.3f} "
              f"{(time.time() - begin) / len(loader) * 1e3:.0f} ms/step")


if __name__ == "__main__":
    main()
