"""Each step is fed with Python lists that become tensors, or takes a part of a tensor that is there."""

import random
import sys

import torch
from transformers import BertConfig, BertForSequenceClassification

STEPS, BATCH, LENGTH = 20, 64, 512


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    random.seed(0)
    config = BertConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=1, intermediate_size=16, vocab_size=1000, num_labels=2
    )
    model = BertForSequenceClassification(config)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    texts = [[random.randrange(1000) for _ in range(LENGTH)] for _ in range(BATCH)]
    labels = torch.randint(0, 2, (BATCH,))
    resident = torch.tensor(texts)
    for _ in range(STEPS):
        tokens = resident if sys.argv[1] == "after" else torch.tensor(texts)
        optimizer.zero_grad()
        model(input_ids=tokens[:, :32], labels=labels).loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
