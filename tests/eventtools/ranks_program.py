"""Four blocks of two layers on two ranks: data parallel, tensor parallel or as a pipeline of two stages."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

mode = sys.argv[1]
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)
WIDTH = 512


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, WIDTH, bias=False)
        self.down = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


if mode == "pipeline":
    half = nn.Sequential(Block(), Block())
    stage = PipelineStage(half, rank, world, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, 2, loss_fn=lambda out, target: (out - target).square().mean())
    for _ in range(3):
        if rank == 0:
            schedule.step(torch.ones(16, WIDTH))
        else:
            schedule.step(target=torch.zeros(16, WIDTH), losses=[])
        half.zero_grad()
else:
    net = nn.Sequential(*(Block() for _ in range(4)))
    if mode == "tensor":
        plan = {f"{n}.up": ColwiseParallel() for n in range(4)} | {f"{n}.down": RowwiseParallel() for n in range(4)}
        net = parallelize_module(net, init_device_mesh("cpu", (world,)), plan)
    else:
        net = DistributedDataParallel(net)
    for _ in range(3):
        net(torch.ones(16, WIDTH)).sum().backward()
        net.zero_grad()
dist.barrier()
dist.destroy_process_group()
