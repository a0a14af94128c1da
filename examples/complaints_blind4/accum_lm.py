"""Character LM with an effective batch of 64 on a small machine."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
VOCAB, DIM, LAYERS, HEADS, SEQ = 128, 128, 3, 4, 64
MICRO_BATCH, ACCUM_STEPS = 8, 8


class TinyGPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Parameter(torch.zeros(SEQ, DIM))
        layer = nn.TransformerEncoderLayer(DIM, HEADS, 4 * DIM, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(DIM, VOCAB)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(SEQ))

    def forward(self, ids):
        x = self.tok(ids) + self.pos
        return self.head(self.encoder(x, mask=self.mask, is_causal=True))


def get_batch(text):
    at = torch.randint(0, len(text) - SEQ - 1, (MICRO_BATCH,))
    chunk = text[at[:, None] + torch.arange(SEQ + 1)]
    return chunk[:, :-1], chunk[:, 1:]


def training_step(model, optimizer, text):
    optimizer.zero_grad()
    loss = 0
    for _ in range(ACCUM_STEPS):
        x, y = get_batch(text)
        logits = model(x)
        loss = loss + F.cross_entropy(logits.reshape(-1, VOCAB), y.reshape(-1)) / ACCUM_STEPS
        loss.backward(retain_graph=True)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def main():
    text = torch.randint(0, VOCAB, (100_000,))
    model = TinyGPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    start = time.time()
    for step in range(1, 13):
        loss = training_step(model, optimizer, text)
        if step % 4 == 0:
            print(f"step {step} loss {loss:.3f} {(time.time() - start) / step * 1e3:.0f} ms per optimizer step")


if __name__ == "__main__":
    main()
