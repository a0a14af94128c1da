"""A program of two ranks over gloo: argument 1 is the way to train, 2 the folder for the profiles."""

import importlib
import os
import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

import leadline

STEPS = 2


class Block(nn.Module):
    """Ends in an addition, so that its backward begins with an operator that has no weights."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(32, 32)
        self.down = nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.relu(self.up(x)))  # the residual


def wrapped(model: nn.Module, way: str) -> nn.Module:
    if way == "ddp":
        return nn.parallel.DistributedDataParallel(model)
    if way == "fsdp1":
        from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy

        return FullyShardedDataParallel(
            model,
            device_id=torch.device("cpu"),
            auto_wrap_policy=ModuleWrapPolicy({Block}),
            sharding_strategy=ShardingStrategy.FULL_SHARD,
        )
    if way == "fsdp2":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (2,))
        for block in model:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
    return model


def train(model: nn.Module) -> None:
    for _ in range(STEPS):
        model(torch.ones(4, 32)).sum().backward()


def reduce_later() -> None:
    tensor = torch.ones(1000)
    work = dist.all_reduce(tensor, async_op=True)  # the launch
    torch.sin(torch.ones(10))
    work.wait()
    assert tensor[0] == 2


def run(rank: int, way: str, folder: str) -> None:
    torch.set_num_threads(1)
    store = dist.FileStore(str(Path(folder, "store")), 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=timedelta(seconds=120))
    model = wrapped(nn.Sequential(Block(), Block()), way) if way != "async" else None
    with leadline.profile(Path(folder, f"{rank}.leadline"), quiet=True):
        if model is None:
            reduce_later()
        else:
            train(model)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    if sys.argv[1] != "async":
        importlib.import_module("torch._dynamo")  # once, before there are two ranks that would
    mp.start_processes(run, args=(sys.argv[1], sys.argv[2]), nprocs=2, start_method="fork")  # torch is here already
