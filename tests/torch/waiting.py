"""Programs whose waits are known by construction. Argument 1 is which one, 2 the profile (or the folder for it)."""

import os
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset

import leadline

WAIT_S = 0.6
BATCHES = 3


def compute(seconds: float) -> None:
    """Runs for so much CPU time, however busy the machine is."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))


class Batches(Dataset):
    def __init__(self, make) -> None:
        self.make = make

    def __len__(self) -> int:
        return BATCHES

    def __getitem__(self, index: int) -> torch.Tensor:
        self.make(WAIT_S / BATCHES)
        return torch.ones(4)


def load(make, workers: int) -> None:
    for batch in DataLoader(Batches(make), batch_size=1, num_workers=workers):
        batch.sum()


def seen(function, *arguments) -> None:
    """Between two operators, since a thread is seen from its first event on."""
    torch.ones(1)
    function(*arguments)
    torch.ones(1)


def both() -> None:
    other = threading.Thread(target=seen, args=(compute, WAIT_S), name="other")
    other.start()
    compute(WAIT_S)
    other.join()


PROGRAMS = {
    "computing loader": lambda: load(compute, 0),
    "sleeping worker": lambda: load(time.sleep, 1),
    "fight": lambda: seen(both),
    "sleeping main": lambda: seen(time.sleep, WAIT_S),
}


def late(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    store = dist.FileStore(str(Path(folder, "store")), 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=timedelta(seconds=120))
    with leadline.profile(Path(folder, f"{rank}.leadline"), quiet=True):
        dist.barrier()
        if rank == 1:
            time.sleep(WAIT_S)
        dist.all_reduce(torch.ones(1000))  # rank 0 waits
    dist.destroy_process_group()


def main() -> None:
    which, output = sys.argv[1:]
    if which == "late rank":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        mp.start_processes(late, args=(output,), nprocs=2, start_method="fork")  # torch is here already
        return
    with leadline.profile(output, quiet=True):
        PROGRAMS[which]()


if __name__ == "__main__":
    main()
