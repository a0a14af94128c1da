"""Language model on two ranks with gradient accumulation.

torchrun --nproc_per_node 2 ddp_accumulate.py
"""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

VOCAB, DIM, CONTEXT = 12000, 192, 32
ACCUMULATE = 8


class TinyLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Parameter(torch.zeros(CONTEXT, DIM))
        layer = nn.TransformerEncoderLayer(DIM, 4, 4 * DIM, batch_first=True, norm_first=True, dropout=0.0)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(DIM)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(CONTEXT), persistent=False)

    def forward(self, ids, targets):
        x = self.tok(ids) + self.pos
        x = self.norm(self.blocks(x, mask=self.mask, is_causal=True))
        logits = x @ self.tok.weight.t()
        return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def batches(rank, size, generator):
    text = torch.randint(0, VOCAB, (400_000,), generator=generator)
    while True:
        start = torch.randint(0, len(text) - CONTEXT - 1, (size,), generator=generator)
        window = text[start.unsqueeze(1) + torch.arange(CONTEXT + 1)]
        yield window[:, :-1], window[:, 1:]


def main(steps=30, micro=1):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = DDP(TinyLM(), broadcast_buffers=False, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    stream = batches(rank, micro, torch.Generator().manual_seed(rank))

    for step in range(steps):
        total = torch.zeros(())
        for _ in range(ACCUMULATE):
            ids, targets = next(stream)
            loss = model(ids, targets) / ACCUMULATE
            loss.backward()
            total += loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0 and step % 8 == 0:
            print(f"step {step}: loss {total.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
