"""Character language model with an LSTM. Curves, weights and gradients go to TensorBoard."""
import tempfile
import time

import torch
import torch.nn as nn
from torch.utils.tensorboard import SummaryWriter

TEXT = ("the quick brown fox jumps over the lazy dog while seven wizards quietly judge my box of quartz. "
        "pack my bag with five dozen liquor jugs, and never mind the vexing bold fjord. ") * 400


class CharLM(nn.Module):
    def __init__(self, vocab, hidden=256, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, 64)
        self.lstm = nn.LSTM(64, hidden, layers, batch_first=True, dropout=0.1)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, x, state=None):
        h, state = self.lstm(self.embed(x), state)
        return self.out(h), state


def batches(data, batch, length):
    n = len(data) // batch
    lanes = data[: n * batch].view(batch, n)
    while True:
        for i in range(0, n - length - 1, length):
            yield lanes[:, i : i + length], lanes[:, i + 1 : i + length + 1]


def main(steps=110):
    torch.manual_seed(0)
    chars = sorted(set(TEXT))
    data = torch.tensor([chars.index(c) for c in TEXT])
    model = CharLM(len(chars))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    loss_fn = nn.CrossEntropyLoss()
    writer = SummaryWriter(tempfile.mkdtemp())
    state = None
    start = time.time()
    stream = batches(data, 16, 32)
    for step in range(steps):
        x, y = next(stream)
        logits, state = model(x, state)
        state = tuple(s.detach() for s in state)
        loss = loss_fn(logits.flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

        writer.add_scalar("train/loss", loss.item(), step)
        writer.add_scalar("train/grad_norm", norm.item(), step)
        if step % 100 == 99:
            for name, p in model.named_parameters():
                writer.add_histogram("weights/" + name, p, step)
                writer.add_histogram("grads/" + name, p.grad, step)
        if step % 10 == 9:
            print(f"step {step + 1} loss {loss.item():.3f} {time.time() - start:.1f} s", flush=True)
    writer.close()


if __name__ == "__main__":
    main()
