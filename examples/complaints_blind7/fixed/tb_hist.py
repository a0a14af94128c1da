"""Character language model (LSTM); TensorBoard shows loss, weights and gradients."""
import argparse
import tempfile
import time

import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.tensorboard import SummaryWriter


class CharModel(nn.Module):
    def __init__(self, vocab=96, dim=64, hidden=256):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.LSTM(dim, hidden, num_layers=2, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, x):
        y, _ = self.rnn(self.emb(x))
        return self.out(y)


def make_text(n, vocab=96, seed=0):
    g = torch.Generator().manual_seed(seed)
    text = torch.randint(0, vocab, (n,), generator=g)
    text[1::2] = (text[0::2] * 7 + 3) % vocab
    return text


def windows(text, batch, length):
    while True:
        start = torch.randint(0, len(text) - length - 1, (batch,))
        idx = start[:, None] + torch.arange(length + 1)
        chunk = text[idx]
        yield chunk[:, :-1], chunk[:, 1:]


class Board:
    def __init__(self, folder, model):
        self.writer = SummaryWriter(folder)
        self.model = model

    def log(self, step, loss):
        self.writer.add_scalar("train/loss", loss, step)
        if step % 20:
            return
        for name, p in self.model.named_parameters():
            self.writer.add_histogram(f"weights/{name}", p, step)
            self.writer.add_histogram(f"grads/{name}", p.grad, step)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=40)
    p.add_argument("--batch", type=int, default=16)
    args = p.parse_args()
    torch.manual_seed(0)
    model = CharModel()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    data = windows(make_text(200_000), args.batch, 48)
    with tempfile.TemporaryDirectory() as folder:
        board = Board(folder, model)
        t0 = time.time()
        for step in range(args.steps):
            x, y = next(data)
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            board.log(step, loss.item())
            if step % 10 == 0:
                print(step, round(loss.item(), 4))
        print(f"{1000 * (time.time() - t0) / args.steps:.1f} ms/step")
        board.writer.close()


if __name__ == "__main__":
    main()
