"""Two-process training of a wide recommender tower. Start: torchrun --nproc-per-node 2 ddp.py"""
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

ACCUMULATE = 8
MICRO_BATCH = 16


class Clicks(Dataset):
    def __init__(self, n=16 * 2 * 8 * 34):
        g = torch.Generator().manual_seed(0)
        self.x = torch.randn(n, 512, generator=g)
        self.y = (self.x[:, :16].sum(1) > 0).float()

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Tower(nn.Module):
    def __init__(self, width=1536):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(512, width), nn.GELU(),
            nn.Linear(width, width), nn.GELU(),
            nn.Linear(width, 256), nn.GELU(),
            nn.Linear(256, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)

    data = Clicks()
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=MICRO_BATCH, sampler=sampler, drop_last=True)
    model = DDP(Tower())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    loss_fn = nn.BCEWithLogitsLoss()

    start = time.time()
    for epoch in range(int(os.environ.get("EPOCHS", 1))):
        sampler.set_epoch(epoch)
        running = 0.0
        for step, (x, y) in enumerate(loader):
            loss = loss_fn(model(x), y) / ACCUMULATE
            loss.backward()
            running += loss.item()
            if (step + 1) % ACCUMULATE == 0:
                optimizer.step()
                optimizer.zero_grad()
                if rank == 0 and (step + 1) % (ACCUMULATE * 10) == 0:
                    print(f"epoch {epoch} update {(step + 1) // ACCUMULATE} loss {running / 10:.4f} "
                          f"{time.time() - start:.1f} s", flush=True)
                    running = 0.0
    dist.barrier()
    if rank == 0:
        print(f"{world} ranks: {time.time() - start:.1f} s")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
