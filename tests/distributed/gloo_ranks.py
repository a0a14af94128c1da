"""Ranks over gloo that train a small model with DistributedDataParallel; one of them loads its data slowly.

`gloo_ranks.py FOLDER SLOW_RANK`, under torchrun: each rank leaves a file of its own.
"""

import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

import leadline

folder, slow = sys.argv[1], int(sys.argv[2])
dist.init_process_group("gloo")
torch.set_num_threads(1)
rank = dist.get_rank()


class Data(Dataset):
    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.03 if rank == slow else 0.001)
        return torch.randn(64)


torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
profiler = leadline.build_profiler(enable=True, trace_dir=folder, start_step=1000, end_step=1001)
profiler.start(0)
for step, batch in enumerate(DataLoader(Data(), batch_size=2)):
    loss = model(batch).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    profiler.step(step)
profiler.stop()
dist.barrier()
dist.destroy_process_group()
