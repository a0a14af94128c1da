"""Healthy: a small residual CNN on cached images, with loader workers and a running loss on the device."""
import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, count=4096, size=32):
        generator = torch.Generator().manual_seed(0)
        self.images = torch.randint(0, 256, (count, 3, size, size), generator=generator, dtype=torch.uint8)
        self.labels = torch.randint(0, 10, (count,), generator=generator)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index].float().div_(255)
        if torch.rand(()) < 0.5:
            image = image.flip(-1)
        return image, self.labels[index]


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
        )

    def forward(self, x):
        return torch.relu(x + self.body(x))


def build(width=48):
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        Residual(width),
        Residual(width),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(width, 10),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(
        Images(), batch_size=args.batch_size, shuffle=True, num_workers=1, persistent_workers=True, drop_last=True
    )
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, foreach=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    started = time.perf_counter()
    for epoch in range(args.epochs):
        running = torch.zeros(())
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            running += loss.detach()
        schedule.step()
        print(f"epoch {epoch}: loss {running.item() / len(loader):.3f}")
    print(f"{(time.perf_counter() - started) / args.epochs / len(loader) * 1000:.0f} ms a step")


if __name__ == "__main__":
    main()
