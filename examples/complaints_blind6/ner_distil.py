"""Named entities with a small DistilBERT, sequences tokenised and sorted into batches beforehand."""
import time

import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import DistilBertConfig, DistilBertForTokenClassification

VOCAB, LENGTH, N_TAGS = 6000, 64, 9


def encoded_corpus(n):
    g = torch.Generator().manual_seed(8)
    input_ids = torch.randint(5, VOCAB, (n, LENGTH), generator=g)
    tags = (input_ids // 10) % N_TAGS
    tags[torch.rand(n, LENGTH, generator=g) < 0.1] = 0
    return TensorDataset(input_ids, torch.ones_like(input_ids), tags)


def build_model():
    config = DistilBertConfig(vocab_size=VOCAB, max_position_embeddings=LENGTH, dim=192, hidden_dim=768,
                              n_layers=4, n_heads=6, num_labels=N_TAGS)
    return DistilBertForTokenClassification(config)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    hits = total = 0
    for input_ids, mask, tags in loader:
        pred = model(input_ids=input_ids, attention_mask=mask).logits.argmax(-1)
        hits += (pred == tags).sum().item()
        total += tags.numel()
    model.train()
    return hits / total


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(encoded_corpus(400), batch_size=16, shuffle=True, drop_last=True)
    valid_loader = DataLoader(encoded_corpus(64), batch_size=32)
    model = build_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    model.train()
    for epoch in range(2):
        start, loss_sum = time.time(), 0.0
        for input_ids, mask, tags in train_loader:
            loss = model(input_ids=input_ids, attention_mask=mask, labels=tags).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            loss_sum += loss.item()
        took = time.time() - start
        print(f"epoch {epoch} train loss {loss_sum / len(train_loader):.3f} "
              f"valid acc {evaluate(model, valid_loader):.3f} {took / len(train_loader):.3f} s/it")


if __name__ == "__main__":
    main()
