"""Fine-tune a small BERT on product reviews that are tokenised already."""
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

MAX_LEN, PAD = 256, 0


class ReviewDataset(Dataset):
    def __init__(self, n=192, vocab=8000, seed=0):
        rng = np.random.default_rng(seed)
        lengths = np.clip(rng.lognormal(3.3, 0.5, n).astype(int), 6, MAX_LEN)
        self.reviews = [rng.integers(5, vocab, length).tolist() for length in lengths]
        self.stars = rng.integers(0, 5, n).tolist()

    def __len__(self):
        return len(self.reviews)

    def __getitem__(self, i):
        return {"input_ids": self.reviews[i], "label": self.stars[i]}


def collate_fn(features):
    input_ids = torch.full((len(features), MAX_LEN), PAD, dtype=torch.long)
    attention_mask = torch.zeros(len(features), MAX_LEN, dtype=torch.long)
    for row, feature in enumerate(features):
        n = len(feature["input_ids"])
        input_ids[row, :n] = torch.tensor(feature["input_ids"])
        attention_mask[row, :n] = 1
    labels = torch.tensor([f["label"] for f in features])
    return {"input_ids": input_ids, "attention_mask": attention_mask, "labels": labels}


def main():
    torch.manual_seed(0)
    config = BertConfig(vocab_size=8000, hidden_size=192, num_hidden_layers=4, num_attention_heads=6,
                        intermediate_size=768, max_position_embeddings=MAX_LEN, num_labels=5)
    model = BertForSequenceClassification(config)
    loader = DataLoader(ReviewDataset(), batch_size=16, shuffle=True, collate_fn=collate_fn)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, fused=True)
    scheduler = get_linear_schedule_with_warmup(optimizer, 5, len(loader))
    model.train()
    start = time.time()
    for step, batch in enumerate(loader, 1):
        outputs = model(**batch)
        outputs.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        if step % 4 == 0:
            print(f"step {step}/{len(loader)} loss {outputs.loss.item():.3f} {(time.time() - start) / step * 1e3:.0f} ms/step")


if __name__ == "__main__":
    main()
