"""Healthy: segment synthetic blobs with a small U-Net."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)


def block(a, b):
    return nn.Sequential(
        nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True),
        nn.Conv2d(b, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, w=16):
        super().__init__()
        self.d1, self.d2, self.d3 = block(3, w), block(w, 2 * w), block(2 * w, 4 * w)
        self.u2, self.u1 = block(6 * w, 2 * w), block(3 * w, w)
        self.pool = nn.MaxPool2d(2)
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.out = nn.Conv2d(w, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(self.pool(a))
        c = self.d3(self.pool(b))
        b = self.u2(torch.cat([self.up(c), b], dim=1))
        a = self.u1(torch.cat([self.up(b), a], dim=1))
        return self.out(a)


def blobs(count, size=64):
    noise = torch.rand(count, 1, size // 8, size // 8)
    field = F.interpolate(noise, size=(size, size), mode="bicubic", align_corners=False)
    masks = (field > 0.6).float()
    images = masks * torch.rand(count, 3, 1, 1) + 0.2 * torch.randn(count, 3, size, size)
    return TensorDataset(images, masks)


def main(epochs=2):
    data = blobs(480)
    train, valid = torch.utils.data.random_split(data, [400, 80])
    sampler = torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(train), 16, drop_last=True)
    model = UNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=epochs * len(sampler))
    images, masks = data.tensors
    index = torch.tensor(train.indices)
    for epoch in range(epochs):
        model.train()
        total = torch.zeros(())
        for rows in sampler:
            pick = index[rows]
            loss = F.binary_cross_entropy_with_logits(model(images[pick]), masks[pick])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.detach()
        model.eval()
        with torch.inference_mode():
            scores = [((model(x) > 0) == (y > 0.5)).float().mean() for x, y in DataLoader(valid, batch_size=40)]
        print(f"epoch {epoch}: loss {total.item() / len(sampler):.4f}, accuracy {torch.stack(scores).mean():.3f}")


if __name__ == "__main__":
    main()
