"""Train on a Dask cluster: one task a rank, each on a worker of its own. `python dask_ranks.py FOLDER`"""

import sys
from pathlib import Path

import torch
import torch.distributed as dist
from dask.distributed import Client, LocalCluster

import leadline

STEPS = 12


def train(rank: int, world: int, address: str, folder: str) -> str:
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=world)
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    optimizer = torch.optim.AdamW(model.parameters())
    prof = leadline.build_profiler(enable=True, trace_dir=folder, rank=rank)
    prof.start(0)
    for step in range(STEPS):
        loss = model(torch.randn(32, 64)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        prof.step(step)
    path = prof.stop()
    dist.destroy_process_group()
    return str(path)


def main() -> None:
    world, folder = 2, str(Path(sys.argv[1]).resolve())  # workers have working directories of their own
    Path(folder).mkdir(parents=True, exist_ok=True)
    with (
        LocalCluster(n_workers=world, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        workers = list(client.scheduler_info()["workers"])
        address = f"file://{folder}/rendezvous"
        ranks = [
            client.submit(train, rank, world, address, folder, workers=[workers[rank]], pure=False)
            for rank in range(world)
        ]
        print(client.gather(ranks))


if __name__ == "__main__":
    main()
