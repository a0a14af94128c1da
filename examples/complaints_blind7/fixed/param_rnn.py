"""Orthogonal recurrent network on the copy task."""
import argparse
import time

import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize
import torch.nn.functional as F


class OrthoCell(nn.Module):
    def __init__(self, n_in, hidden):
        super().__init__()
        self.inp = nn.Linear(n_in, hidden)
        self.rec = parametrizations.orthogonal(nn.Linear(hidden, hidden, bias=False))
        self.bias = nn.Parameter(torch.full((hidden,), -0.01))

    def forward(self, x, h):
        z = self.inp(x) + self.rec(h)
        return torch.sign(z) * F.relu(z.abs() + self.bias)


class CopyModel(nn.Module):
    def __init__(self, symbols, hidden):
        super().__init__()
        self.symbols = symbols
        self.hidden = hidden
        self.cell = OrthoCell(symbols, hidden)
        self.out = nn.Linear(hidden, symbols)

    def forward(self, tokens):
        x = F.one_hot(tokens, self.symbols).float()
        h = x.new_zeros(tokens.shape[0], self.hidden)
        outputs = []
        for t in range(tokens.shape[1]):
            h = self.cell(x[:, t], h)
            outputs.append(h)
        return self.out(torch.stack(outputs, 1))


def copy_batch(batch, keep, gap, symbols):
    seq = torch.randint(1, symbols - 1, (batch, keep))
    blank = torch.zeros(batch, gap, dtype=torch.long)
    mark = torch.full((batch, 1), symbols - 1)
    x = torch.cat([seq, blank, mark, torch.zeros(batch, keep, dtype=torch.long)], 1)
    y = torch.cat([torch.zeros(batch, keep + gap + 1, dtype=torch.long), seq], 1)
    return x, y


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=30)
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--hidden", type=int, default=192)
    args = p.parse_args()
    torch.manual_seed(0)
    model = CopyModel(10, args.hidden)
    opt = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    t0 = time.time()
    for step in range(args.steps):
        x, y = copy_batch(args.batch, 10, 30, 10)
        with parametrize.cached():
            logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 10 == 0:
            print(step, round(loss.item(), 4))
    print(f"{1000 * (time.time() - t0) / args.steps:.1f} ms/step")


if __name__ == "__main__":
    main()
