"""Data-parallel training of a keyword spotter with gloo: torchrun --nproc-per-node 2 ddp_average.py"""
import time

import torch
import torch.distributed as dist
import torch.nn as nn

STEPS, BATCH = 90, 16


class Bottleneck(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(width, width // 2, 1), nn.BatchNorm1d(width // 2), nn.ReLU(),
            nn.Conv1d(width // 2, width // 2, 3, padding=1), nn.BatchNorm1d(width // 2), nn.ReLU(),
            nn.Conv1d(width // 2, width, 1), nn.BatchNorm1d(width))

    def forward(self, x):
        return torch.relu(x + self.net(x))


class Spotter(nn.Module):
    def __init__(self, width=48, depth=12, classes=20):
        super().__init__()
        self.stem = nn.Conv1d(40, width, 3, padding=1)
        self.blocks = nn.Sequential(*[Bottleneck(width) for _ in range(depth)])
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean(-1))


def average_gradients(model):
    """Average the gradients over all ranks, as in the tutorial."""
    size = float(dist.get_world_size())
    grads = [param.grad for param in model.parameters()]
    flat = torch.cat([grad.reshape(-1) for grad in grads])
    dist.all_reduce(flat, op=dist.ReduceOp.SUM)
    flat /= size
    torch._foreach_copy_(grads, [part.view_as(grad) for part, grad
                                 in zip(flat.split([grad.numel() for grad in grads]), grads)])


def sync_parameters(model):
    for param in model.parameters():
        dist.broadcast(param.data, src=0)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = Spotter()
    sync_parameters(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    g = torch.Generator().manual_seed(100 + rank)
    clips = torch.randn(1024, 40, 64, generator=g)
    labels = torch.randint(0, 20, (1024,), generator=g)
    start = time.perf_counter()
    for step in range(STEPS):
        idx = torch.randint(0, len(clips), (BATCH,), generator=g)
        loss = nn.functional.cross_entropy(model(clips[idx]), labels[idx])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        average_gradients(model)
        opt.step()
        if rank == 0 and (step + 1) % 30 == 0:
            print(f"step {step + 1} loss {loss.item():.4f}", flush=True)
    if rank == 0:
        print(f"{(time.perf_counter() - start) / STEPS * 1e3:.1f} ms a step")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
