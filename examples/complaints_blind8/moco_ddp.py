"""Momentum contrast on small images with DDP. Start: torchrun --nproc-per-node 2 moco_ddp.py"""
import argparse
import copy
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def encoder(dim):
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, stride=2, padding=1),
        nn.GroupNorm(4, 32),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1),
        nn.GroupNorm(8, 64),
        nn.ReLU(),
        nn.Conv2d(64, 128, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, dim),
    )


class MoCo(nn.Module):
    def __init__(self, dim=256, size=65536, momentum=0.99, temperature=0.2):
        super().__init__()
        self.query = encoder(dim)
        self.key = copy.deepcopy(self.query).requires_grad_(False)
        self.momentum = momentum
        self.temperature = temperature
        self.register_buffer("queue", nn.functional.normalize(torch.randn(size, dim), dim=1))
        self.pointer = 0

    @torch.no_grad()
    def update_key(self):
        pairs = zip(self.key.parameters(), self.query.parameters())
        for slow, fast in pairs:
            slow.lerp_(fast, 1 - self.momentum)

    @torch.no_grad()
    def enqueue(self, keys):
        gathered = [torch.empty_like(keys) for _ in range(dist.get_world_size())]
        dist.all_gather(gathered, keys)
        keys = torch.cat(gathered)
        self.queue[self.pointer : self.pointer + len(keys)] = keys
        self.pointer = (self.pointer + len(keys)) % len(self.queue)

    def forward(self, first, second):
        query = nn.functional.normalize(self.query(first), dim=1)
        with torch.no_grad():
            self.update_key()
            key = nn.functional.normalize(self.key(second), dim=1)
            negatives = self.queue[torch.randint(len(self.queue), (4096,))]
        positive = (query * key).sum(dim=1, keepdim=True)
        logits = torch.cat([positive, query @ negatives.T], dim=1) / self.temperature
        self.enqueue(key)
        return logits


def augment(images, generator):
    shift = torch.randint(-3, 4, (2,), generator=generator).tolist()
    images = torch.roll(images, shift, dims=(2, 3))
    return images + 0.05 * torch.randn(images.shape, generator=generator)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=45)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = DistributedDataParallel(MoCo())
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.03, momentum=0.9)
    generator = torch.Generator().manual_seed(rank)
    images = torch.rand(1024, 3, 48, 48, generator=generator)
    started = time.perf_counter()
    for step in range(args.steps):
        batch = images[torch.randint(len(images), (args.batch_size,), generator=generator)]
        logits = model(augment(batch, generator), augment(batch, generator))
        loss = nn.functional.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 40 == 0 and rank == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    if rank == 0:
        print(f"{(time.perf_counter() - started) / args.steps * 1000:.0f} ms a step")
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
