"""One trial of a sweep over small tabular models, started from the cluster's script."""
import argparse
import time

import torch
from torch import nn


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--cpus-per-task", type=int, default=32)
    return parser.parse_args()


def make_table(rows, columns):
    x = torch.randn(rows, columns)
    y = (x[:, :4].prod(1) + 0.1 * torch.randn(rows)).unsqueeze(1)
    return x, y


def build(columns, width, depth):
    layers, size = [], columns
    for _ in range(depth):
        layers += [nn.Linear(size, width), nn.LayerNorm(width), nn.SiLU(), nn.Dropout(0.1)]
        size = width
    return nn.Sequential(*layers, nn.Linear(size, 1))


def main():
    args = parse_args()
    torch.manual_seed(0)
    x, y = make_table(50_000, 40)
    model = build(x.size(1), args.width, args.depth)
    criterion = nn.SmoothL1Loss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    begin = time.perf_counter()
    for step in range(args.steps):
        picked = torch.randint(0, len(x), (args.batch_size,))
        loss = criterion(model(x[picked]), y[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 20 == 0:
            print(f"step {step:4d} loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.2e}")
    print(f"{(time.perf_counter() - begin) / args.steps * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
