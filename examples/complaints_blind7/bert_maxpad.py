"""Fine-tune a small BERT classifier on short reviews."""
import time

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertForSequenceClassification

PAD, CLS, SEP = 0, 101, 102
MAX_LENGTH = 128


class Reviews(Dataset):
    """Token ids of short texts; most have fewer than 40 tokens."""

    def __init__(self, n, seed=0):
        g = torch.Generator().manual_seed(seed)
        lengths = torch.randint(8, 40, (n,), generator=g)
        self.items = [torch.randint(1000, 8000, (int(k),), generator=g).tolist() for k in lengths]
        self.labels = torch.randint(0, 2, (n,), generator=g).tolist()

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return {"ids": [CLS, *self.items[i], SEP], "label": self.labels[i]}


def collate(batch):
    width = MAX_LENGTH
    ids = torch.full((len(batch), width), PAD)
    mask = torch.zeros(len(batch), width, dtype=torch.long)
    for row, item in enumerate(batch):
        n = min(len(item["ids"]), width)
        ids[row, :n] = torch.tensor(item["ids"][:n])
        mask[row, :n] = 1
    labels = torch.tensor([item["label"] for item in batch])
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def main():
    torch.manual_seed(0)
    config = BertConfig(vocab_size=8000, hidden_size=192, num_hidden_layers=3, num_attention_heads=6,
                        intermediate_size=768, max_position_embeddings=512)
    model = BertForSequenceClassification(config)
    model.train()
    opt = torch.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.0, total_iters=40)
    loader = DataLoader(Reviews(16 * 40), batch_size=16, shuffle=True, collate_fn=collate)
    t0 = time.time()
    for step, batch in enumerate(loader):
        out = model(**batch)
        out.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        schedule.step()
        opt.zero_grad()
        if step % 20 == 0:
            print(f"step {step} loss {out.loss.item():.4f}")
    print(f"{1000 * (time.time() - t0) / len(loader):.1f} ms/step")


if __name__ == "__main__":
    main()
