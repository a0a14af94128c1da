"""Healthy: fine-tune a small DistilBERT on tokenised reviews, batched by length."""
import torch
from torch.utils.data import DataLoader, Dataset
from transformers import DistilBertConfig, DistilBertForSequenceClassification, get_linear_schedule_with_warmup

torch.set_num_threads(1)
torch.manual_seed(0)
VOCAB = 4000


class Reviews(Dataset):
    """Token ids made once, when the data set is built."""

    def __init__(self, count=1200):
        lengths = torch.randint(40, 72, (count,)).sort().values
        self.ids = [torch.randint(5, VOCAB, (int(n),)) for n in lengths]
        self.labels = torch.randint(0, 2, (count,)).tolist()

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return self.ids[index], self.labels[index]


class LengthBatches(torch.utils.data.Sampler):
    """Neighbours in length share a batch; the batches come in random order."""

    def __init__(self, count, size):
        self.starts, self.size, self.count = range(0, count - size + 1, size), size, count

    def __iter__(self):
        for i in torch.randperm(len(self.starts)).tolist():
            yield range(self.starts[i], self.starts[i] + self.size)

    def __len__(self):
        return len(self.starts)


def collate(samples):
    ids = torch.nn.utils.rnn.pad_sequence([s[0] for s in samples], batch_first=True)
    return {"input_ids": ids, "attention_mask": (ids != 0).long(),
            "labels": torch.tensor([s[1] for s in samples])}


def main(batch=16):
    data = Reviews()
    loader = DataLoader(data, batch_sampler=LengthBatches(len(data), batch), collate_fn=collate)
    config = DistilBertConfig(vocab_size=VOCAB, dim=256, n_layers=3, n_heads=4, hidden_dim=1024,
                              max_position_embeddings=128)
    model = DistilBertForSequenceClassification(config)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    schedule = get_linear_schedule_with_warmup(optimizer, 10, len(loader))
    running = torch.zeros(())
    for step, inputs in enumerate(loader, 1):
        loss = model(**inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        running += loss.detach()
        if step % 25 == 0:
            print(f"step {step}: loss {running.item() / 25:.4f}")
            running.zero_()


if __name__ == "__main__":
    main()
