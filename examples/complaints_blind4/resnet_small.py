"""Small residual network on 32x32 images held in memory."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class BasicBlock(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.short = nn.Identity() if stride == 1 and cin == cout else nn.Conv2d(cin, cout, 1, stride, bias=False)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(y)) + self.short(x), inplace=True)


class SmallResNet(nn.Module):
    def __init__(self, w=32, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, w, 3, 1, 1, bias=False)
        self.layers = nn.Sequential(BasicBlock(w, w, 1), BasicBlock(w, 2 * w, 2), BasicBlock(2 * w, 2 * w, 1), BasicBlock(2 * w, 4 * w, 2))
        self.fc = nn.Linear(4 * w, classes)

    def forward(self, x):
        return self.fc(self.layers(self.stem(x)).mean((2, 3)))


def main():
    images = torch.randn(2048, 3, 32, 32)
    labels = torch.randint(0, 10, (2048,))
    model = SmallResNet().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, fused=True)
    steps, batch_size = 24, 64
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=steps)
    order = torch.randperm(len(images))
    start, running = time.time(), torch.zeros(())
    for step in range(1, steps + 1):
        idx = order[(step - 1) * batch_size % len(images):][:batch_size]
        x = images[idx].contiguous(memory_format=torch.channels_last)
        loss = F.cross_entropy(model(x), labels[idx])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        running += loss.detach()
        if step % 8 == 0:
            print(f"step {step} loss {running.item() / 8:.3f} {(time.time() - start) / step * 1e3:.0f} ms/step")
            running.zero_()


if __name__ == "__main__":
    main()
