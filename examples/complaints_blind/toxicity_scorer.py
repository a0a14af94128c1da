# fmt: off
import random
import time
import torch
import torch._dynamo
import torch.nn as nn

torch._dynamo.config.recompile_limit = 256
VOCAB = 3000


class Scorer(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=0)
        self.query = nn.Parameter(torch.randn(dim) / dim ** 0.5)
        self.mlp = nn.Sequential(nn.Linear(dim, 128), nn.GELU(), nn.Linear(128, 1))

    def forward(self, ids):
        h = self.emb(ids)
        score = (h @ self.query).masked_fill(ids == 0, -1e4)
        pooled = (torch.softmax(score, dim=1).unsqueeze(-1) * h).sum(1)
        return self.mlp(pooled).squeeze(-1)


def comments(n, seed=0):
    rnd = random.Random(seed)
    return [([rnd.randint(1, VOCAB - 1) for _ in range(rnd.randint(12, 160))], rnd.randint(0, 1))
            for _ in range(n)]


def pad_batch(rows):
    longest = max(len(ids) for ids, _ in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    for i, (tokens, _) in enumerate(rows):
        ids[i, :len(tokens)] = torch.tensor(tokens)
    return ids, torch.tensor([float(label) for _, label in rows])


def main():
    torch.manual_seed(0)
    data = comments(512)
    model = Scorer()
    fast_model = torch.compile(model, backend="aot_eager", dynamic=False)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    t0, step = time.perf_counter(), 0
    for epoch in range(1):
        random.Random(epoch).shuffle(data)
        for start in range(0, len(data), 8):
            ids, label = pad_batch(data[start:start + 8])
            loss = nn.functional.binary_cross_entropy_with_logits(fast_model(ids), label)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % 10 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.3f} "
                      f"{(time.perf_counter() - t0) / step * 1e3:.0f} ms/step")


if __name__ == "__main__":
    main()
# ruff: noqa
