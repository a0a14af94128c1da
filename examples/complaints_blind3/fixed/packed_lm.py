"""Language model on packed documents: several documents share one row."""
import time

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, SEQ_LEN, BATCH, DIM = 1000, 96, 8, 128


def make_batch():
    input_ids = torch.randint(0, VOCAB, (BATCH, SEQ_LEN))
    starts = torch.rand(BATCH, SEQ_LEN) < 0.05
    return input_ids, starts.long().cumsum(1)


def build_mask(doc_ids):
    seq_len = doc_ids.size(1)
    causal = torch.ones(seq_len, seq_len, dtype=torch.bool).tril()
    allowed = (doc_ids.unsqueeze(2) == doc_ids.unsqueeze(1)) & causal
    return torch.zeros(allowed.shape).masked_fill(~allowed, float("-inf")).unsqueeze(1)


class Block(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        att = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.proj(att.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


class PackedLM(nn.Module):
    def __init__(self, layers=4):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Embedding(SEQ_LEN, DIM)
        self.blocks = nn.ModuleList(Block(DIM) for _ in range(layers))
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, input_ids, doc_ids):
        mask = build_mask(doc_ids)
        x = self.embed(input_ids) + self.pos(torch.arange(input_ids.size(1)))
        for block in self.blocks:
            x = block(x, mask)
        return self.head(x)


def main():
    torch.manual_seed(0)
    model = PackedLM()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    steps, begin = 20, time.perf_counter()
    for step in range(steps):
        input_ids, doc_ids = make_batch()
        logits = model(input_ids, doc_ids)
        loss = F.cross_entropy(logits[:, :-1].reshape(-1, VOCAB), input_ids[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            print(f"step {step} loss {loss.item():.3f}")
    print(f"{(time.perf_counter() - begin) / steps * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
