"""Train a small vision transformer on images that lie in memory as bytes."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

STEPS, BATCH, SIZE, PATCH, DIM, HEADS, DEPTH = 90, 32, 32, 4, 128, 4, 4


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, DIM)
        x = x + self.out(y)
        return x + self.mlp(self.n2(x))


class ViT(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.patch = nn.Conv2d(3, DIM, PATCH, stride=PATCH)
        self.pos = nn.Parameter(torch.randn(1, (SIZE // PATCH) ** 2, DIM) * 0.02)
        self.layers = nn.Sequential(*[Layer() for _ in range(DEPTH)])
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.pos
        return self.head(self.norm(self.layers(x).mean(1)))


def batches(images, labels, size):
    while True:
        for idx in torch.randperm(len(images)).split(size):
            if len(idx) == size:
                x = images[idx].float().div_(127.5).sub_(1.0)
                yield torch.where(torch.rand(size, 1, 1, 1) < 0.5, x.flip(-1), x), labels[idx]


def main():
    torch.manual_seed(0)
    labels = torch.randint(0, 10, (4096,))
    images = (torch.rand(4096, 3, SIZE, SIZE) * 200 + labels.view(-1, 1, 1, 1) * 5).to(torch.uint8)
    model = ViT()
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.05, fused=True)
    start = time.perf_counter()
    for step, (x, y) in enumerate(batches(images, labels, BATCH), 1):
        loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 30 == 0:
            print(f"step {step} loss {loss.item():.4f}")
        if step == STEPS:
            break
    print(f"{(time.perf_counter() - start) / STEPS * 1e3:.1f} ms a step")


if __name__ == "__main__":
    main()
