"""Answer short prompts with a small decoder and a preallocated key-value cache."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, DIM, HEADS, LAYERS, MAX_LEN = 4000, 256, 8, 4, 4096


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.out = nn.Linear(DIM, DIM)

    def forward(self, x, cache, pos):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        keys, values = cache
        keys[:, :, pos:pos + t] = k
        values[:, :, pos:pos + t] = v
        mask = torch.arange(MAX_LEN)[None, :] <= torch.arange(pos, pos + t)[:, None]
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(b, t, DIM))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attn = Attention()
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x, cache, pos):
        x = x + self.attn(self.n1(x), cache, pos)
        return x + self.mlp(self.n2(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Embedding(MAX_LEN, DIM)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, VOCAB, bias=False)

    def new_cache(self, batch):
        shape = (batch, HEADS, MAX_LEN, DIM // HEADS)
        return [(torch.zeros(shape), torch.zeros(shape)) for _ in self.layers]

    def forward(self, ids, caches, pos):
        x = self.tok(ids) + self.pos(torch.arange(pos, pos + ids.shape[1]))
        for layer, cache in zip(self.layers, caches):
            x = layer(x, cache, pos)
        return self.head(self.norm(x[:, -1]))


@torch.inference_mode()
def answer(model, caches, prompt, new_tokens):
    logits = model(prompt, caches, 0)
    pos, out = prompt.shape[1], []
    for _ in range(new_tokens):
        token = logits.argmax(-1, keepdim=True)
        out.append(token)
        logits = model(token, caches, pos)
        pos += 1
    return torch.cat(out, dim=1)


def main():
    torch.manual_seed(0)
    model = Decoder().eval()
    prompts = torch.randint(0, VOCAB, (24, 2, 24))
    caches = model.new_cache(2)
    start, tokens = time.perf_counter(), 0
    for i, prompt in enumerate(prompts):
        out = answer(model, caches, prompt, 64)
        tokens += out.shape[1]
        if (i + 1) % 6 == 0:
            print(f"request {i + 1}: {out[0, :6].tolist()}")
    print(f"{(time.perf_counter() - start) / tokens * 1e3:.2f} ms a token")


if __name__ == "__main__":
    main()
