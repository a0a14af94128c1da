"""A GPT with six million weights on byte sequences; gradient clipping, weight decay groups, cosine schedule."""
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

DIM, HEADS, LAYERS, CONTEXT, BATCH, STEPS = 256, 4, 6, 128, 8, 60


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM, bias=False), nn.Linear(DIM, DIM, bias=False)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, DIM))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(256, DIM), nn.Parameter(torch.zeros(CONTEXT, DIM))
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, 256, bias=False)

    def forward(self, idx):
        x = self.tok(idx) + self.pos[: idx.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x))


def main():
    torch.manual_seed(0)
    data = torch.frombuffer(bytearray(open(__file__, "rb").read() * 20), dtype=torch.uint8).long()
    model = GPT()
    decay = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}], lr=1e-3)
    start = time.time()
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * 0.5 * (1 + math.cos(math.pi * step / STEPS))
        at = torch.randint(0, len(data) - CONTEXT - 1, (BATCH, 1)) + torch.arange(CONTEXT + 1)
        chunk = data[at]
        logits = model(chunk[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), chunk[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 19:
            print(f"step {step + 1} loss {loss.item():.3f} {time.time() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
