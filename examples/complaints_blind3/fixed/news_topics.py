"""Topic of news articles: fast tokenizer, small encoder."""
import random
import time

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import nn
from torch.utils.data import DataLoader, Dataset
from transformers import PreTrainedTokenizerFast

MAX_LEN, TOPICS = 48, 4
SYLLABLES = [a + b for a in "bcdfghklmnprst" for b in "aeiou"]


def make_articles(count):
    rng = random.Random(0)
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(2, 5))) for _ in range(4000)]
    return [" ".join(rng.choices(words, k=1500)) for _ in range(count)]


def make_tokenizer(articles):
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=2000, special_tokens=["[PAD]", "[UNK]"], show_progress=False)
    tokenizer.train_from_iterator(articles[:50], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]")


class NewsDataset(Dataset):
    def __init__(self, articles, tokenizer):
        self.enc = tokenizer(articles, truncation=True, max_length=MAX_LEN,
                             padding="max_length", return_tensors="pt")
        self.labels = [len(text) % TOPICS for text in articles]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {"input_ids": self.enc["input_ids"][index], "attention_mask": self.enc["attention_mask"][index],
                "labels": self.labels[index]}


class Encoder(nn.Module):
    def __init__(self, vocab, dim=64):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 128, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.cls = nn.Linear(dim, TOPICS)

    def forward(self, input_ids, attention_mask):
        x = self.encoder(self.embed(input_ids), src_key_padding_mask=attention_mask == 0)
        return self.cls(x.mean(1))


def main():
    torch.manual_seed(0)
    articles = make_articles(240)
    tokenizer = make_tokenizer(articles)
    steps, begin = 0, time.perf_counter()
    loader = DataLoader(NewsDataset(articles, tokenizer), batch_size=16, shuffle=True)
    model = Encoder(len(tokenizer))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    for epoch in range(6):
        for batch in loader:
            loss = nn.functional.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
        print(f"epoch {epoch} loss {loss.item():.4f}")
    print(f"{(time.perf_counter() - begin) / steps * 1e3:.1f} ms/step")


if __name__ == "__main__":
    main()
