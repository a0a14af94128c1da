"""Momentum contrast on 32x32 crops."""
import copy
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


def encoder(dim):
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, dim))


class MoCo(nn.Module):
    def __init__(self, dim=128, K=65536, m=0.99, T=0.07):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.encoder_q = encoder(dim)
        self.encoder_k = copy.deepcopy(self.encoder_q)
        for p in self.encoder_k.parameters():
            p.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(K, dim), dim=1))

    @torch.no_grad()
    def momentum_update(self):
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            k.lerp_(q, 1 - self.m)

    @torch.no_grad()
    def dequeue_and_enqueue(self, keys):
        self.queue = torch.cat([self.queue, keys], dim=0)[-self.K:]

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            self.momentum_update()
            k = F.normalize(self.encoder_k(im_k), dim=1)
        l_pos = (q * k).sum(dim=1, keepdim=True)
        l_neg = q @ self.queue.t()
        logits = torch.cat([l_pos, l_neg], dim=1) / self.T
        labels = torch.zeros(len(q), dtype=torch.long)
        loss = F.cross_entropy(logits, labels)
        self.dequeue_and_enqueue(k)
        return loss


def two_crops(images, size=32):
    def crop(x):
        i, j = torch.randint(0, x.shape[2] - size + 1, (2,)).tolist()
        x = x[:, :, i:i + size, j:j + size]
        return x.flip(3) if torch.rand(()) < 0.5 else x
    return crop(images), crop(images)


def main():
    data = torch.rand(2048, 3, 40, 40)
    model = MoCo()
    optimizer = torch.optim.SGD(model.encoder_q.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
    steps, batch_size, start = 150, 16, time.time()
    for step in range(1, steps + 1):
        im_q, im_k = two_crops(data[torch.randint(0, len(data), (batch_size,))])
        loss = model(im_q, im_k)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"[{step}/{steps}] loss {loss.item():.3f} {(time.time() - start) / step * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
