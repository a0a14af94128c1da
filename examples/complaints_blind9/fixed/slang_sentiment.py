"""Sentiment of short posts: normalise slang, hash the words, train a bag-of-embeddings."""
import random
import re

import pandas as pd
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
random.seed(0)
BUCKETS = 20_000
MAX_WORDS = 48


def build_frame(rows=6000):
    """Stands in for posts.csv."""
    words = [f"w{i}" for i in range(3000)] + [f"slang{i}" for i in range(700)]
    records = []
    for _ in range(rows):
        text = " ".join(random.choices(words, k=random.randint(12, 40)))
        records.append({"text": text + random.choice(["!!!", " :)", " http://t.co/x1", ""]),
                        "label": random.randint(0, 1)})
    return pd.DataFrame(records)


def build_slang():
    """Stands in for slang.json, crawled from an online dictionary."""
    return {f"slang{i}": f"plain{i} meaning{i % 50}" for i in range(700)}


class PostDataset(Dataset):
    def __init__(self, frame, slang):
        self.frame = frame.reset_index(drop=True)
        self.texts = self.frame["text"].tolist()
        self.labels = torch.tensor(self.frame["label"].to_numpy())
        self.slang = slang
        self.pattern = re.compile(r"\b(" + "|".join(map(re.escape, slang)) + r")\b")

    def __len__(self):
        return len(self.texts)

    def clean(self, text):
        text = re.sub(r"http\S+", " url ", text.lower())
        text = re.sub(r"([!?.])\1+", r" \1 ", text)
        return self.pattern.sub(lambda m: self.slang[m.group(1)], text)

    def __getitem__(self, index):
        words = self.clean(self.texts[index]).split()[:MAX_WORDS]
        ids = torch.zeros(MAX_WORDS, dtype=torch.long)
        hashed = [hash(w) % (BUCKETS - 1) + 1 for w in words]
        ids[: len(hashed)] = torch.tensor(hashed)
        return ids, self.labels[index]


class Classifier(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.embed = nn.Embedding(BUCKETS, dim, padding_idx=0, sparse=False)
        self.mix = nn.TransformerEncoderLayer(dim, 4, 128, batch_first=True, dropout=0.0)
        self.out = nn.Linear(dim, 2)

    def forward(self, ids):
        pad = ids.eq(0)
        x = self.mix(self.embed(ids), src_key_padding_mask=pad)
        x = x.masked_fill(pad.unsqueeze(-1), 0).sum(1) / (~pad).sum(1, keepdim=True).clamp(min=1)
        return self.out(x)


def main(steps=56, batch=8):
    loader = DataLoader(PostDataset(build_frame(), build_slang()), batch_size=batch, shuffle=True)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    running, batches = 0.0, iter(loader)
    for step in range(1, steps + 1):
        ids, labels = next(batches)
        loss = criterion(model(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.detach()
        if step % 10 == 0:
            print(f"step {step}: loss {running.item() / 10:.4f}")
            running = 0.0


if __name__ == "__main__":
    main()
