"""A BERT of transformers, as text classification is trained: AdamW, a warm-up, gradient clipping."""

import sys

import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup


def model() -> BertForSequenceClassification:
    config = BertConfig(
        vocab_size=500, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=128
    )
    return BertForSequenceClassification(config)


def batches() -> DataLoader:
    tokens, labels = torch.randint(0, 500, (48, 32)), torch.randint(0, 2, (48,))
    return DataLoader(TensorDataset(tokens, labels), batch_size=8, shuffle=True)


def train() -> None:
    net = model().train()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    warmup = get_linear_schedule_with_warmup(optimizer, 2, 10)
    for tokens, labels in batches():
        loss = net(input_ids=tokens, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        warmup.step()
        optimizer.zero_grad()


@torch.no_grad()
def infer() -> None:
    net = model().eval()
    right = 0
    for tokens, labels in batches():
        right += (net(input_ids=tokens).logits.argmax(-1) == labels).sum().item()
    print("accuracy", right / 48)


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
