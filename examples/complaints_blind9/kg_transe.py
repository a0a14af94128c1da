"""TransE knowledge-graph embeddings with margin ranking."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


class TransE(nn.Module):
    def __init__(self, entities, relations, dim):
        super().__init__()
        self.ent = nn.Embedding(entities, dim, max_norm=1.0)
        self.rel = nn.Embedding(relations, dim)
        bound = 6 / dim**0.5
        nn.init.uniform_(self.ent.weight, -bound, bound)
        nn.init.uniform_(self.rel.weight, -bound, bound)
        self.refine = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))

    def score(self, h, r, t):
        head = self.ent(h)
        tail = self.ent(t)
        relation = self.rel(r)
        relation = relation + self.refine(relation)
        return torch.linalg.vector_norm(head + relation - tail, dim=-1)

    def forward(self, pos, neg):
        return self.score(*pos.unbind(-1)), self.score(*neg.unbind(-1))


def synthetic_graph(entities, relations, triples, generator):
    h = torch.randint(0, entities, (triples,), generator=generator)
    r = torch.randint(0, relations, (triples,), generator=generator)
    t = (h * 7 + r * 131 + torch.randint(0, 5, (triples,), generator=generator)) % entities
    return torch.stack([h, r, t], dim=1)


def corrupt(batch, entities):
    """Replace head or tail by a random entity, as in the paper."""
    neg = batch.clone()
    side = torch.rand(len(batch)) < 0.5
    randoms = torch.randint(0, entities, (len(batch),))
    neg[side, 0] = randoms[side]
    neg[~side, 2] = randoms[~side]
    return neg


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--entities", type=int, default=14951)
    parser.add_argument("--relations", type=int, default=1345)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=150)
    args = parser.parse_args()

    generator = torch.Generator().manual_seed(0)
    triples = synthetic_graph(args.entities, args.relations, 200_000, generator)
    dataset = TensorDataset(triples)
    sampler = torch.utils.data.BatchSampler(
        torch.utils.data.RandomSampler(dataset, generator=generator), args.batch, drop_last=True)
    loader = DataLoader(dataset, sampler=sampler, batch_size=None)

    model = TransE(args.entities, args.relations, args.dim)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    target = torch.ones(args.batch)

    step = 0
    while step < args.steps:
        for (batch,) in loader:
            pos, neg = model(batch, corrupt(batch, args.entities))
            loss = F.margin_ranking_loss(neg, pos, target, margin=1.0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 30 == 0:
                print(f"step {step}: loss {loss.item():.4f}")
            if step >= args.steps:
                break


if __name__ == "__main__":
    main()
