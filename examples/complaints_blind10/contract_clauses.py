"""Classify clauses of contracts. A clause is described by which glossary terms occur in it and by its words."""
import random
import re
import time

import pandas as pd
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

random.seed(5)
SYLLABLES = ["ten", "ant", "les", "sor", "pay", "ment", "ind", "em", "nity", "gua", "ran", "tee", "war", "ant",
             "arb", "it", "ral", "con", "fid", "ent", "term", "in", "ate", "ass", "ign"]


def word(k):
    return "".join(random.choice(SYLLABLES) for _ in range(k))


VOCAB = sorted({word(2) for _ in range(500)} | {word(3) for _ in range(1500)})
GLOSSARY = random.sample(VOCAB, 640)


def make_frame(n=1600):
    rows = []
    for i in range(n):
        words = random.choices(VOCAB, k=random.randint(25, 60))
        rows.append({"id": i, "clause": f"§{i % 40}.{i % 7} " + " ".join(words) + " EUR 1,250.00",
                     "kind": i % 12})
    return pd.DataFrame(rows)


class ClauseDataset(Dataset):
    def __init__(self, frame, terms):
        self.frame = frame
        self.terms = terms
        self.index = {w: i + 1 for i, w in enumerate(VOCAB)}

    def __len__(self):
        return len(self.frame)

    def clean(self, text):
        text = re.sub(r"§\d+(\.\d+)*", " ", text)
        text = re.sub(r"EUR\s[\d,.]+", " amount ", text)
        return re.sub(r"\s+", " ", text).strip().lower()

    def __getitem__(self, i):
        row = self.frame.iloc[i]
        text = self.clean(row["clause"])
        found = [1.0 if re.search(rf"\b{term}\b", text) else 0.0 for term in self.terms]
        ids = [self.index.get(w, 0) for w in text.split()][:48]
        ids += [0] * (48 - len(ids))
        return torch.tensor(ids), torch.tensor(found), int(row["kind"])


class ClauseNet(nn.Module):
    def __init__(self, terms, dim=128):
        super().__init__()
        self.emb = nn.Embedding(len(VOCAB) + 1, dim, padding_idx=0)
        layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.1, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.terms = nn.Linear(terms, dim)
        self.head = nn.Linear(2 * dim, 12)

    def forward(self, ids, found):
        h = self.enc(self.emb(ids)).mean(1)
        return self.head(torch.cat([h, self.terms(found).relu()], dim=1))


def main():
    torch.manual_seed(0)
    data = ClauseDataset(make_frame(), GLOSSARY)
    loader = DataLoader(data, batch_size=8, shuffle=True, drop_last=True)
    model = ClauseNet(len(GLOSSARY))
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    start, step, limit = time.perf_counter(), 0, 40
    for ids, found, kind in loader:
        loss = nn.functional.cross_entropy(model(ids, found), kind)
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}")
        if step == limit:
            break
    print(f"{(time.perf_counter() - start) / step * 1e3:.1f} ms a step")


if __name__ == "__main__":
    main()
