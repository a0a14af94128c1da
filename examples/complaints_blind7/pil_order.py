"""Classify product photos; augmentation with PIL."""
import io
import random
import time

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageFilter
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SIZE = 64


def make_photos(n=48, side=640, seed=0):
    """JPEG bytes, as a shop's image server would give them."""
    rng = np.random.default_rng(seed)
    photos = []
    for i in range(n):
        small = rng.integers(0, 255, (20, 20, 3), dtype=np.uint8)
        image = Image.fromarray(small).resize((side, side), Image.BICUBIC)
        buf = io.BytesIO()
        image.save(buf, "JPEG", quality=85)
        photos.append((buf.getvalue(), i % 8))
    return photos


class Compose:
    def __init__(self, steps):
        self.steps = steps

    def __call__(self, image):
        for s in self.steps:
            image = s(image)
        return image


def blur(image):
    return image.filter(ImageFilter.GaussianBlur(random.uniform(0.5, 2.0)))


def jitter(image):
    image = ImageEnhance.Color(image).enhance(random.uniform(0.6, 1.4))
    image = ImageEnhance.Brightness(image).enhance(random.uniform(0.8, 1.2))
    return ImageEnhance.Contrast(image).enhance(random.uniform(0.8, 1.2))


def resize(image):
    return image.resize((SIZE, SIZE), Image.BILINEAR)


def to_tensor(image):
    return torch.from_numpy(np.asarray(image, dtype=np.float32) / 255).permute(2, 0, 1)


class Photos(Dataset):
    def __init__(self, photos, transform, length):
        self.photos, self.transform, self.length = photos, transform, length

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        data, label = self.photos[i % len(self.photos)]
        image = Image.open(io.BytesIO(data)).convert("RGB")
        return self.transform(image), label


def main():
    torch.manual_seed(0)
    transform = Compose([blur, jitter, resize, to_tensor])
    loader = DataLoader(Photos(make_photos(), transform, 8 * 50), batch_size=8, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 1, 1), nn.ReLU(),
        nn.Conv2d(64, 128, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 8))
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    t0 = time.time()
    for step, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(step, round(loss.item(), 4))
    print(f"{1000 * (time.time() - t0) / len(loader):.1f} ms/step")


if __name__ == "__main__":
    main()
