# fmt: off
import time
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader


class LeafPhotos(Dataset):
    def __init__(self, n=64, size=48):
        g = torch.Generator().manual_seed(3)
        self.images = torch.rand(n, 3, size, size, generator=g)
        self.targets = torch.randint(0, 5, (n,), generator=g)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        img = self.images[i]
        if torch.rand(()) < 0.5:
            img = img.flip(-1)
        return (img - 0.5) / 0.25, self.targets[i]


def conv_block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout),
                         nn.ReLU(), nn.MaxPool2d(2))


class LeafNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(conv_block(3, 16), conv_block(16, 32), conv_block(32, 64))
        self.classifier = nn.Linear(64, 5)

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


def train_one_epoch(model, loader, opt):
    model.train()
    total = 0.0
    for images, targets in loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(images), targets)
        loss.backward()
        opt.step()
        total += loss.item() * len(images)
    return total / len(loader.dataset)


def main():
    torch.manual_seed(0)
    dataset = LeafPhotos()
    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=2)
    model = LeafNet()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(40):
        t0 = time.perf_counter()
        loss = train_one_epoch(model, loader, opt)
        if epoch % 5 == 0:
            dt = (time.perf_counter() - t0) / len(loader)
            print(f"epoch {epoch:3d} loss {loss:.3f} {dt * 1e3:.0f} ms per step")


if __name__ == "__main__":
    main()
# ruff: noqa
