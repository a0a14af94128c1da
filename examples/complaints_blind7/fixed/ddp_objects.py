"""torchrun --nproc-per-node 2: DDP on the CPU with gloo; accuracy and hard examples over all ranks."""
import time

import torch
import torch.distributed as dist
from torch import nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Net(nn.Module):
    def __init__(self, features=256, classes=400):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                                    nn.Linear(512, classes))

    def forward(self, x):
        return self.layers(x)


def gather_predictions(logits, target):
    """Predictions and targets of all ranks, in rank order."""
    world = dist.get_world_size()
    probs = logits.new_empty(world * logits.shape[0], logits.shape[1])
    labels = target.new_empty(world * target.shape[0])
    dist.all_gather_into_tensor(probs, logits.softmax(-1))
    dist.all_gather_into_tensor(labels, target)
    return probs, labels


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    x = torch.randn(512 * 2 * 25, 256)
    y = torch.randint(0, 400, (len(x),))
    data = TensorDataset(x, y)
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=512, sampler=sampler, drop_last=True)
    model = DDP(Net())
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    correct = seen = step = 0
    t0 = time.time()
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for bx, by in loader:
            logits = model(bx)
            loss = F.cross_entropy(logits, by)
            opt.zero_grad()
            loss.backward()
            opt.step()
            probs, labels = gather_predictions(logits.detach(), by)
            correct += int((probs.argmax(-1) == labels).sum())
            seen += len(labels)
            step += 1
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f} acc {correct / seen:.4f}")
    if rank == 0:
        print(f"{1000 * (time.time() - t0) / step:.1f} ms/step")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
