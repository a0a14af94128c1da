"""Segmentation of cells with a little U-Net; validation after every epoch."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(),
                         nn.Conv2d(o, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down1, self.down2 = block(1, width), block(width, 2 * width)
        self.bottom = block(2 * width, 4 * width)
        self.up2, self.up1 = block(6 * width, 2 * width), block(3 * width, width)
        self.pool = nn.MaxPool2d(2)
        self.scale = nn.Upsample(scale_factor=2)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(self.pool(a))
        c = self.bottom(self.pool(b))
        b = self.up2(torch.cat([self.scale(c), b], 1))
        a = self.up1(torch.cat([self.scale(b), a], 1))
        return self.out(a)


def make_cells(count, seed):
    g = torch.Generator().manual_seed(seed)
    images = torch.nn.functional.avg_pool2d(torch.randn(count, 1, 128, 128, generator=g), 5, 1, 2)
    return TensorDataset(images, (images > 0.1).float())


def train_epoch(model, loader, criterion, optimizer):
    model.train()
    for images, masks in loader:
        optimizer.zero_grad()
        loss = criterion(model(images), masks)
        loss.backward()
        optimizer.step()


def validate(model, loader, criterion):
    model.eval()
    val_loss = 0
    for images, masks in loader:
        loss = criterion(model(images), masks)
        val_loss += loss
    return val_loss / len(loader)


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(make_cells(64, 0), batch_size=8, shuffle=True)
    val_loader = DataLoader(make_cells(512, 1), batch_size=8)
    model = UNet()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    begin, epochs = time.perf_counter(), 2
    for epoch in range(epochs):
        train_epoch(model, train_loader, criterion, optimizer)
        middle = time.perf_counter()
        val_loss = validate(model, val_loader, criterion)
        print(f"epoch {epoch} val {val_loss:.4f} validation {time.perf_counter() - middle:.1f} s")
    print(f"{(time.perf_counter() - begin) / epochs * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
