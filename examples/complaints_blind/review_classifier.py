# fmt: off
import random
import re
import time
import torch
import torch.nn as nn
from torch.utils.data import DataLoader

WORDS = ("the movie was really great boring acting plotted scenes loved hated director's "
         "characters watching finished disappointingly wonderful never again soundtrack "
         "performances believable ending minutes story writing").split()
SUFFIXES = ("ingly", "ances", "ing", "ed", "ly", "es", "s")


def make_reviews(n, seed=0):
    rnd = random.Random(seed)
    rows = []
    for _ in range(n):
        text = " ".join(rnd.choice(WORDS) for _ in range(rnd.randint(180, 260)))
        rows.append((f"<p>{text.capitalize()}!!! See http://imdb.com/t{rnd.randint(1, 999)}<br/></p>",
                     rnd.randint(0, 1)))
    return rows


def stem(word):
    for suffix in SUFFIXES:
        if word.endswith(suffix) and len(word) > len(suffix) + 3:
            return word[:-len(suffix)]
    return word


def encode(text, vocab, max_len=256):
    text = re.sub(r"<[^>]+>", " ", text.lower())
    text = re.sub(r"https?://\S+", " URL ", text)
    text = re.sub(r"([!?.,])\1+", r" \1 ", text)
    tokens = [stem(w) for w in re.findall(r"[A-Za-z']+|[0-9]+|[^\sA-Za-z0-9]", text)]
    ids = [vocab.setdefault(t, len(vocab) + 1) for t in tokens][:max_len]
    return ids + [0] * (max_len - len(ids))


class TextCNN(nn.Module):
    def __init__(self, vocab_size=2000, dim=48):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.conv = nn.Conv1d(dim, 64, 3, padding=1)
        self.out = nn.Linear(64, 2)

    def forward(self, ids):
        return self.out(torch.relu(self.conv(self.emb(ids).transpose(1, 2))).amax(-1))


def main():
    torch.manual_seed(0)
    vocab = {}

    def collate(rows):
        ids = torch.tensor([encode(text, vocab) for text, _ in rows])
        return ids, torch.tensor([label for _, label in rows])

    loader = DataLoader(make_reviews(640), batch_size=32, shuffle=True, collate_fn=collate)
    model = TextCNN()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    step, t0 = 0, time.perf_counter()
    for epoch in range(14):
        for ids, label in loader:
            loss = nn.functional.cross_entropy(model(ids), label)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            step += 1
        print(f"epoch {epoch}: loss {loss.item():.3f}, {(time.perf_counter() - t0) / step * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
# ruff: noqa
