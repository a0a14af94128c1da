"""A job that comes to stand: KIND FOLDER. Every rank leaves its number of process in FOLDER/RANK."""

import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

from leadline.capture import attached

kind, folder = sys.argv[1], Path(sys.argv[2])
dist.init_process_group("gloo")
rank = dist.get_rank()
folder.mkdir(exist_ok=True)
partial = folder.with_name(f".{rank}")


def measured() -> None:
    """From now on, into a file of its own."""
    attached._start(str(folder.with_name(f"rank{rank}.leadline")), '{"flush_interval_s": 0.5, "hang_after_s": 0}')


def lost() -> None:
    time.sleep(600)


def step(number: int) -> None:
    if number == 3 and rank == 1:
        if kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        lost()
    if kind == "late" and number == rank:
        measured()
    if kind == "message":  # from rank to rank, in a ring; what is sent last is received first
        following, before = (rank + 1) % dist.get_world_size(), (rank - 1) % dist.get_world_size()
        sent = [dist.isend(torch.ones(7), following, tag=tag) for tag in (0, 2)]
        for tag in (2, 0):
            dist.recv(torch.empty(7), before, tag=tag)
        for one in sent:
            one.wait()
        return
    dist.all_reduce(torch.ones(7))


for number in range(3):
    step(number)
partial.write_text(str(os.getpid()))
partial.replace(folder / str(rank))
step(3)
