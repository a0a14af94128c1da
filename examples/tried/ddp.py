"""Data-parallel training of two ranks: torchrun --nproc-per-node 2 ddp.py"""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Trainer:
    def __init__(self, model, train_data, optimizer, save_every):
        self.rank = int(os.environ["RANK"])
        self.train_data, self.optimizer, self.save_every = train_data, optimizer, save_every
        self.model = DDP(model)

    def _run_batch(self, source, targets):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(source), targets)
        loss.backward()
        self.optimizer.step()

    def train(self, max_epochs):
        for epoch in range(max_epochs):
            self.train_data.sampler.set_epoch(epoch)
            for source, targets in self.train_data:
                self._run_batch(source, targets)
            if self.rank == 0 and epoch % self.save_every == 0:
                torch.save(self.model.module.state_dict(), "snapshot.pt")


def main():
    dist.init_process_group(backend="gloo")
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(2048, 256), torch.randint(0, 10, (2048,)))
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = DataLoader(data, batch_size=32, shuffle=False, sampler=DistributedSampler(data))
    Trainer(model, loader, optimizer, save_every=2).train(4)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
