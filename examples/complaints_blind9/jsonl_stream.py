"""Train a click model from a JSON-lines log that is streamed by DataLoader workers."""
import json
import os
import random
import tempfile

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

FIELDS = 20
DENSE = 96
HASH = 5000


def write_log(path, rows, seed=0):
    rng = random.Random(seed)
    with open(path, "w") as out:
        for i in range(rows):
            event = {"id": i, "label": int(rng.random() < 0.2),
                     "dense": [round(rng.gauss(0, 1), 5) for _ in range(DENSE)],
                     "context": {f"f{k}": f"value_{rng.randrange(800)}" for k in range(FIELDS)}}
            out.write(json.dumps(event) + "\n")


class ClickLog(IterableDataset):
    def __init__(self, path):
        self.path = path

    def parse(self, line):
        event = json.loads(line)
        dense = torch.tensor(event["dense"]).clamp(-3, 3)
        sparse = [hash((k, v)) % HASH for k, v in event["context"].items()]
        return dense, torch.tensor(sparse), torch.tensor(float(event["label"]))

    def __iter__(self):
        info = get_worker_info()
        worker, total = (info.id, info.num_workers) if info else (0, 1)
        with open(self.path) as log:
            for number, line in enumerate(log):
                sample = self.parse(line)
                if number % total != worker:
                    continue
                yield sample


class WideDeep(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.embed = nn.Embedding(HASH, dim)
        self.deep = nn.Sequential(
            nn.Linear(FIELDS * dim + DENSE, 256), nn.ReLU(),
            nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, dense, sparse):
        x = torch.cat([dense, self.embed(sparse).flatten(1)], dim=1)
        return self.deep(x).squeeze(1)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    path = os.path.join(tempfile.mkdtemp(), "clicks.jsonl")
    write_log(path, rows=22_000)
    loader = DataLoader(ClickLog(path), batch_size=200, num_workers=4, prefetch_factor=2)
    model = WideDeep()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    total = torch.zeros(())
    for step, (dense, sparse, label) in enumerate(loader, 1):
        loss = criterion(model(dense, sparse), label)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.detach()
        if step % 20 == 0:
            print(f"step {step}: {total.item() / step:.4f}", flush=True)
    os.remove(path)


if __name__ == "__main__":
    main()
