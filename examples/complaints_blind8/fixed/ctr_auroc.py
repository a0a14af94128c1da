"""Click-through-rate model with the area under the ROC curve in the progress line."""
import argparse
import time

import torch
from torch import nn
from torchmetrics.classification import BinaryAUROC
from tqdm import tqdm

FIELDS, BUCKETS = 10, 2000


class DeepCTR(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.embed = nn.Embedding(FIELDS * BUCKETS, width, sparse=True)
        self.register_buffer("offsets", torch.arange(FIELDS) * BUCKETS)
        self.layers = nn.Sequential(
            nn.Linear(FIELDS * width, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1)
        )

    def forward(self, ids):
        return self.layers(self.embed(ids + self.offsets).flatten(1)).squeeze(-1)


def click_batches(count, size, seed=0):
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(FIELDS, BUCKETS, generator=generator) * 0.5
    for _ in range(count):
        ids = torch.randint(BUCKETS, (size, FIELDS), generator=generator)
        logit = weight.gather(1, ids.T).sum(dim=0) - 1
        yield ids, torch.bernoulli(torch.sigmoid(logit), generator=generator)


def train(model, steps, batch_size):
    dense = torch.optim.Adam(model.layers.parameters(), lr=1e-3)
    sparse = torch.optim.SparseAdam(list(model.embed.parameters()), lr=5e-3)
    loss_of = nn.BCEWithLogitsLoss()
    auroc = BinaryAUROC()
    bar = tqdm(click_batches(steps, batch_size), total=steps, mininterval=2)
    for ids, clicks in bar:
        scores = model(ids)
        loss = loss_of(scores, clicks)
        dense.zero_grad()
        sparse.zero_grad()
        loss.backward()
        dense.step()
        sparse.step()

        auroc.update(torch.sigmoid(scores.detach()), clicks.long())
        bar.set_postfix(loss=f"{loss.item():.3f}")
    return auroc.compute().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=220)
    parser.add_argument("--batch-size", type=int, default=2048)
    args = parser.parse_args()

    torch.manual_seed(0)
    model = DeepCTR()
    started = time.perf_counter()
    final = train(model, args.steps, args.batch_size)
    print(f"AUROC {final:.4f}")
    print(f"{(time.perf_counter() - started) / args.steps * 1000:.1f} ms a step")


if __name__ == "__main__":
    main()
