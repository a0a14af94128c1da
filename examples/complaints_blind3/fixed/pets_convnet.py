"""Cats against dogs from a folder of photographs, small convnet."""
import pathlib
import tempfile
import time

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


def make_photos(folder, count):
    rng = np.random.default_rng(0)
    for i in range(count):
        small = rng.integers(0, 255, (24, 32, 3), dtype=np.uint8)
        photo = Image.fromarray(small).resize((1280, 960), Image.BICUBIC)
        photo.save(folder / f"{'cat' if i % 2 else 'dog'}_{i:04d}.jpg", quality=90)


class PetDataset(Dataset):
    def __init__(self, folder, size=64):
        self.files = sorted(folder.glob("*.jpg"))
        self.size = size

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        path = self.files[index]
        img = Image.open(path)
        img.draft("RGB", (2 * self.size, 2 * self.size))
        img = img.convert("RGB")
        img = img.resize((self.size, self.size), Image.BILINEAR)
        x = torch.from_numpy(np.array(img)).permute(2, 0, 1).float() / 255
        return (x - 0.5) / 0.5, int(path.name.startswith("cat"))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(64, 96, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(96, 2)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_photos(folder, 96)
        loader = DataLoader(PetDataset(folder), batch_size=16, shuffle=True)
        model = Net()
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        steps, begin = 0, time.perf_counter()
        for epoch in range(5):
            running_loss = 0.0
            for images, labels in loader:
                optimizer.zero_grad()
                loss = criterion(model(images), labels)
                loss.backward()
                optimizer.step()
                running_loss += loss.item()
                steps += 1
            print(f"epoch {epoch} loss {running_loss / len(loader):.4f}")
        print(f"{(time.perf_counter() - begin) / steps * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
