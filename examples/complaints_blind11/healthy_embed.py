"""Embed a corpus of sentences in batches sorted by length, under inference mode, and write one array."""
import random
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence

WORDS, DIM = 20_000, 256


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, DIM, padding_idx=0)
        layer = nn.TransformerEncoderLayer(DIM, 8, 4 * DIM, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 5, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(DIM)

    def forward(self, tokens):
        pad = tokens.eq(0)
        h = self.norm(self.encoder(self.embed(tokens), src_key_padding_mask=pad))
        keep = (~pad).unsqueeze(2)
        return nn.functional.normalize((h * keep).sum(1) / keep.sum(1), dim=1)


@torch.inference_mode()
def embed(model, sentences, batch=32):
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    out = torch.empty(len(sentences), DIM)
    for i in range(0, len(order), batch):
        take = order[i : i + batch]
        out[take] = model(pad_sequence([sentences[j] for j in take], batch_first=True))
    return out.numpy()


def main(n=2400):
    torch.manual_seed(0)
    rnd = random.Random(0)
    sentences = [torch.randint(1, WORDS, (rnd.randint(30, 60),)) for _ in range(n)]
    model = Encoder().eval()
    start = time.time()
    vectors = embed(model, sentences)
    with tempfile.NamedTemporaryFile(suffix=".npy") as f:
        np.save(f, vectors)
    print(f"{n} sentences in {time.time() - start:.1f} s, mean similarity {float((vectors @ vectors[0]).mean()):.3f}")


if __name__ == "__main__":
    main()
