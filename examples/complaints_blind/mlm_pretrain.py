# fmt: off
import random
import time
import torch
import torch.nn as nn

PAD, CLS, MASK, VOCAB = 0, 1, 2, 4000


def corrupt(ids, prob=0.15):
    """BERT style 80/10/10 corruption."""
    inputs = ids.clone()
    labels = torch.full_like(ids, -100)
    for b in range(ids.size(0)):
        for t in range(ids.size(1)):
            if ids[b, t] == PAD or ids[b, t] == CLS:
                continue
            r = random.random()
            if r < prob:
                labels[b, t] = ids[b, t]
                r /= prob
                if r < 0.8:
                    inputs[b, t] = MASK
                elif r < 0.9:
                    inputs[b, t] = random.randint(3, VOCAB - 1)
    return inputs, labels


class Encoder(nn.Module):
    def __init__(self, dim=64, layers=1):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.pos = nn.Parameter(torch.randn(1, 96, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(dim, 4, 3 * dim, dropout=0.1, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.lm_head = nn.Linear(dim, VOCAB)

    def forward(self, ids, labels):
        h = self.enc(self.tok(ids) + self.pos[:, :ids.size(1)], src_key_padding_mask=ids.eq(PAD))
        picked = labels.ne(-100)
        return nn.functional.cross_entropy(self.lm_head(h[picked]), labels[picked])


def corpus_batches(n, batch=16, length=96):
    g = torch.Generator().manual_seed(1)
    for _ in range(n):
        ids = torch.randint(3, VOCAB, (batch, length), generator=g)
        ids[:, 0] = CLS
        ids[:, -8:] = PAD
        yield ids


def main():
    torch.manual_seed(0)
    random.seed(0)
    model = Encoder()
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.01)
    t0 = time.perf_counter()
    for step, ids in enumerate(corpus_batches(110), 1):
        inputs, labels = corrupt(ids)
        loss = model(inputs, labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 15 == 0:
            print(f"step {step} mlm loss {loss.item():.3f} {(time.perf_counter() - t0) / step:.3f} s/it")


if __name__ == "__main__":
    main()
# ruff: noqa
