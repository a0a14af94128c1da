"""FixMatch on synthetic shapes: a few labels, many unlabelled images."""
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


def draw(n, seed):
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 4, (n,), generator=g)
    yy, xx = torch.meshgrid(torch.arange(32.0), torch.arange(32.0), indexing="ij")
    cy, cx = torch.rand(2, n, 1, 1, generator=g) * 16 + 8
    dy, dx = (yy - cy).abs(), (xx - cx).abs()
    masks = torch.stack([dy + dx < 7, torch.maximum(dy, dx) < 5, dy ** 2 + dx ** 2 < 36, (dy < 2) | (dx < 2)])
    images = masks[labels, torch.arange(n)].float().unsqueeze(1).repeat(1, 3, 1, 1)
    return images + 0.2 * torch.randn(images.shape, generator=g), labels


class Shapes(Dataset):
    def __init__(self, n, seed, two_views=False):
        self.images, self.labels = draw(n, seed)
        self.two_views = two_views

    def __len__(self):
        return len(self.images)

    def weak(self, img):
        return img.flip(-1) if torch.rand(()) < 0.5 else img

    def strong(self, img):
        img = self.weak(img).clone()
        y, x = torch.randint(0, 22, (2,)).tolist()
        img[:, y:y + 10, x:x + 10] = 0.5
        return img * (0.6 + 0.8 * torch.rand(()))

    def __getitem__(self, i):
        img = self.images[i]
        if self.two_views:
            return self.weak(img), self.strong(img)
        return self.weak(img), self.labels[i]


def convnet():
    return nn.Sequential(
        nn.Conv2d(3, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(24, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(48, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 4))


def main():
    torch.manual_seed(0)
    labeled = DataLoader(Shapes(256, 0), batch_size=16, shuffle=True)
    unlabeled = DataLoader(Shapes(4000, 1, two_views=True), batch_size=48, shuffle=True,
                           num_workers=2, drop_last=True)
    model = convnet()
    opt = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, nesterov=True)
    for epoch in range(3):
        start = time.time()
        for x, y in labeled:
            weak, strong = next(iter(unlabeled))
            logits = model(torch.cat([x, weak, strong]))
            out_x, out_w, out_s = logits.split([len(x), len(weak), len(strong)])
            conf, pseudo = out_w.detach().softmax(-1).max(-1)
            loss_u = (F.cross_entropy(out_s, pseudo, reduction="none") * (conf > 0.9)).mean()
            loss = F.cross_entropy(out_x, y) + loss_u
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}, pseudo-labelled {(conf > 0.9).float().mean():.2f}, "
              f"{time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
