"""Ranks that share one import of torch, each told what torchrun tells it: `forked_ranks.py RANKS MODULE PROGRAM WORDS...`.

MODULE is imported before there are ranks: torch, or torch._dynamo, which the first step of an optimizer would import.
For tests about ranks and not about what starts them: torchrun and each of its ranks would take seconds to import torch.
"""

import importlib
import os
import runpy
import signal
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as torchrun does
import torch.distributed as dist

PORT_DIGITS = 5


def run_rank(rank: int, words: list[str], port: int) -> None:
    """The program as a script, once the launcher has written where the ranks meet."""
    told = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": int(os.read(port, PORT_DIGITS)),
    }
    os.environ.update({name: str(value) for name, value in told.items()})
    sys.argv = words
    runpy.run_path(words[0], run_name="__main__")


def main(ranks: int, words: list[str]) -> int:
    environment = {"WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "TORCHELASTIC_USE_AGENT_STORE": True}
    os.environ.update({name: str(value) for name, value in environment.items()})
    reading, writing = os.pipe()
    living = set()
    for rank in range(ranks):
        child = os.fork()
        if child == 0:
            run_rank(rank, words, reading)
            return 0
        living.add(child)
    # Behind the forks: its thread would not be there in a child, which would wait for it at its end.
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    os.write(writing, f"{store.port:{PORT_DIGITS}}".encode() * ranks)
    failed = 0
    while living:
        child, status = os.wait()
        living.discard(child)
        if status and not failed:
            failed = 1
            for other in living:
                os.kill(other, signal.SIGTERM)
    return failed


if __name__ == "__main__":
    importlib.import_module(sys.argv[2])
    sys.exit(main(int(sys.argv[1]), sys.argv[3:]))
