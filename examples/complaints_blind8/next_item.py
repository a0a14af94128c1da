"""Next-item prediction from a shop's click log (pandas), with a GRU."""
import argparse
import time

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

ITEMS = 3000


def read_log(sessions):
    """A stand-in for pd.read_parquet("clicks.parquet")."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(12, 40, size=sessions)
    names = np.repeat([f"s{number:06d}" for number in range(sessions)], lengths)
    log = pd.DataFrame(
        {
            "session": names.astype(object),
            "item": rng.zipf(1.3, size=len(names)) % ITEMS,
            "dwell": rng.exponential(20.0, size=len(names)).astype(np.float32),
            "clock": rng.integers(0, 86400, size=len(names)),
        }
    )
    return log.sample(frac=1.0, random_state=0).reset_index(drop=True)


class Sessions(Dataset):
    def __init__(self, log):
        self.log = log
        self.names = log["session"].unique()

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        clicks = self.log[self.log["session"] == self.names[index]]
        order = np.argsort(clicks["clock"].to_numpy(), kind="stable")
        items = torch.from_numpy(clicks["item"].to_numpy()[order])
        dwell = torch.from_numpy(clicks["dwell"].to_numpy()[order]).log1p()
        return items, dwell


def collate(samples):
    items = pad_sequence([sample[0] for sample in samples], batch_first=True)
    dwell = pad_sequence([sample[1] for sample in samples], batch_first=True)
    return items, dwell, torch.tensor([len(sample[0]) for sample in samples])


class NextItem(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.embed = nn.Embedding(ITEMS, width)
        self.gru = nn.GRU(width + 1, width, batch_first=True)
        self.head = nn.Linear(width, ITEMS)

    def forward(self, items, dwell, lengths):
        inputs = torch.cat([self.embed(items), dwell.unsqueeze(-1)], dim=-1)
        packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
        hidden, _ = self.gru(packed)
        return self.head(hidden.data), hidden


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=45)
    args = parser.parse_args()

    torch.manual_seed(0)
    loader = DataLoader(Sessions(read_log(args.sessions)), batch_size=32, shuffle=True, collate_fn=collate)
    model = NextItem()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    started = time.perf_counter()
    step = 0
    while step < args.steps:
        for items, dwell, lengths in loader:
            scores, _ = model(items[:, :-1], dwell[:, :-1], lengths - 1)
            target = pack_padded_sequence(items[:, 1:], lengths - 1, batch_first=True, enforce_sorted=False).data
            loss = nn.functional.cross_entropy(scores, target)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if step % 30 == 0:
                print(f"step {step}: loss {loss.item():.3f}")
            step += 1
            if step >= args.steps:
                break
    print(f"{(time.perf_counter() - started) / step * 1000:.0f} ms a step")


if __name__ == "__main__":
    main()
