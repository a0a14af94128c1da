"""Sample melodies from a small decoder-only transformer (weights from training are not in this repository)."""
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

NOTES, CONTEXT = 400, 320


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, past=None):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return self.proj(y.transpose(1, 2).reshape(b, t, d)), (k, v)


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, past=None):
        y, kv = self.attn(self.ln1(x), past)
        x = x + y
        return x + self.mlp(self.ln2(x)), kv


class MelodyLM(nn.Module):
    def __init__(self, dim=192, heads=6, layers=5):
        super().__init__()
        self.tok, self.pos = nn.Embedding(NOTES, dim), nn.Embedding(CONTEXT, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.ln = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, NOTES, bias=False)

    def forward(self, idx, past=None):
        offset = 0 if past is None else past[0][0].shape[2]
        x = self.tok(idx) + self.pos(torch.arange(offset, offset + idx.shape[1]))
        kvs = []
        for i, block in enumerate(self.blocks):
            x, kv = block(x, None if past is None else past[i])
            kvs.append(kv)
        return self.head(self.ln(x)), kvs


def top_k(logits, k=20, temperature=0.9):
    values, index = torch.topk(logits / temperature, k)
    choice = torch.multinomial(values.softmax(-1), 1)
    return index.gather(-1, choice)


@torch.no_grad()
def generate(model, prompt, new_notes):
    seq = prompt
    for _ in range(new_notes):
        logits, _ = model(seq)
        seq = torch.cat([seq, top_k(logits[:, -1])], 1)
    return seq


def main(songs=6, new_notes=150):
    torch.manual_seed(0)
    model = MelodyLM().eval()
    start = time.time()
    for song in range(songs):
        prompt = torch.randint(0, NOTES, (2, 16))
        melody = generate(model, prompt, new_notes)
        rate = (song + 1) * new_notes / (time.time() - start)
        entropy = -sum(p * math.log(p) for p in (melody[0].bincount(minlength=NOTES) / melody.shape[1]).tolist() if p)
        print(f"song {song} entropy {entropy:.2f}, {rate:.1f} notes/s", flush=True)


if __name__ == "__main__":
    main()
