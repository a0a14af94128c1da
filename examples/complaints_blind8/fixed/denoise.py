"""Train a small residual denoiser on noisy texture patches."""
import argparse
import time
from collections import defaultdict

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)
        self.act = nn.SiLU()

    def forward(self, x):
        return x + self.second(self.act(self.first(x)))


class Denoiser(nn.Module):
    def __init__(self, width=32, depth=4):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.head = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x):
        return x - self.head(self.blocks(self.stem(x)))


class Monitor:
    """Keeps an eye on dead and exploding activations; the report comes at the end of training."""

    def __init__(self, model):
        self.history = defaultdict(list)
        self.active = False
        for name, module in model.named_modules():
            if isinstance(module, (nn.Conv2d, Block)):
                module.register_forward_hook(self.watch(name))

    def watch(self, name):
        levels = torch.tensor([0.01, 0.5, 0.99])

        def hook(module, inputs, output):
            if self.active:
                self.history[name].append(torch.quantile(output.detach().flatten(), levels))

        return hook

    def report(self):
        for name, rows in self.history.items():
            low, middle, high = torch.stack(rows)[-10:].mean(dim=0).tolist()
            print(f"{name or 'model'}: {low:.3f} {middle:.3f} {high:.3f}")


def textures(count, size, generator):
    phase = torch.rand(count, 1, 1, 1, generator=generator) * 6.28
    speed = torch.rand(count, 1, 1, 1, generator=generator) * 0.6 + 0.1
    axis = torch.arange(size, dtype=torch.float32)
    return torch.sin(speed * axis.view(1, 1, 1, -1) + phase) * torch.cos(speed * axis.view(1, 1, -1, 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=45)
    parser.add_argument("--batch-size", type=int, default=4)
    args = parser.parse_args()

    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    clean = textures(512, 40, generator)
    model = Denoiser()
    monitor = Monitor(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    started = time.perf_counter()
    for step in range(args.steps):
        batch = clean[torch.randint(len(clean), (args.batch_size,), generator=generator)]
        monitor.active = step % 50 == 0
        noisy = batch + 0.2 * torch.randn(batch.shape, generator=generator)
        loss = nn.functional.mse_loss(model(noisy), batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    print(f"{(time.perf_counter() - started) / args.steps * 1000:.1f} ms a step")
    monitor.report()


if __name__ == "__main__":
    main()
