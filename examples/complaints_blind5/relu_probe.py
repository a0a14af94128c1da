import time
from collections import defaultdict
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


def conv_block(c_in, c_out):
    return nn.Sequential(nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU())


class FashionNet(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.features = nn.Sequential(
            conv_block(1, 16), conv_block(16, 16), nn.MaxPool2d(2),
            conv_block(16, 32), conv_block(32, 32), nn.MaxPool2d(2),
            conv_block(32, 64), nn.AdaptiveAvgPool2d(1),
        )
        self.classifier = nn.Linear(64, num_classes)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


class ActivationStats:
    def __init__(self):
        self.stats = defaultdict(dict)

    def save(self, name, module, inputs, output):
        out = output.detach()
        per_channel = (out <= 0).float().mean(dim=(0, 2, 3))
        self.stats[name] = {
            "dead": (per_channel > 0.99).float().mean().item(),
            "mean": out.mean().item(),
            "std": out.std().item(),
        }

    def attach(self, model):
        for name, module in model.named_modules():
            if isinstance(module, nn.ReLU):
                module.register_forward_hook(partial(self.save, name))

    def summary(self):
        return " ".join(f"{k.split('.')[1]}:{v['dead']:.2f}/{v['std']:.2f}" for k, v in self.stats.items())


def train_one_epoch(model, optimizer, images, labels, batch_size=64):
    model.train()
    for idx in torch.randperm(len(images)).split(batch_size):
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(images[idx]), labels[idx])
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def validate(model, images, labels):
    model.eval()
    probe = ActivationStats()
    probe.attach(model)
    correct = sum((model(x).argmax(1) == y).sum().item() for x, y in zip(images.split(64), labels.split(64)))
    return correct / len(images), probe.summary()


if __name__ == "__main__":
    images, labels = torch.randn(832, 1, 28, 28), torch.randint(0, 10, (832,))
    images += labels.view(-1, 1, 1, 1) / 5
    model = FashionNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(12):
        t0 = time.time()
        loss = train_one_epoch(model, optimizer, images[:640], labels[:640])
        acc, summary = validate(model, images[640:], labels[640:])
        print(f"epoch {epoch:2d} loss {loss:.3f} acc {acc:.3f} {time.time() - t0:.2f}s  {summary}")
