"""One process of a distributed program on the fake GPU: torch's own marks around an NCCL kernel, and a real collective."""

import ctypes
import os
import sys

from tests.nvidia import fake_gpu

fake_gpu.load()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import leadline  # noqa: E402

marks = ctypes.CDLL(os.environ["MARKS"])
Inside = ctypes.CFUNCTYPE(None)


def all_reduce_of_nccl() -> None:
    marks.collective(b"allreduce", Inside(lambda: fake_gpu.launch(b"ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 50_000)))


with leadline.profile(sys.argv[1], quiet=True):
    all_reduce_of_nccl()
    marks.undescribed(Inside(lambda: fake_gpu.launch(b"ncclDevKernel_Broadcast_RING_LL", 10_000)))
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    dist.all_reduce(torch.ones(4))
    dist.destroy_process_group()
