"""Batch inference with a transformers BERT; healthy: inference mode, texts sorted by length, padded per batch."""
import time

import torch
from transformers import BertConfig, BertModel


def texts(n):
    g = torch.Generator().manual_seed(0)
    lengths = torch.randint(8, 60, (n,), generator=g).tolist()
    return [torch.randint(1000, 8000, (k,), generator=g) for k in lengths]


def batches(items, size):
    order = sorted(range(len(items)), key=lambda i: len(items[i]))
    for k in range(0, len(order), size):
        chosen = order[k:k + size]
        ids = torch.nn.utils.rnn.pad_sequence([items[i] for i in chosen], batch_first=True)
        yield chosen, ids, (ids != 0).long()


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    config = BertConfig(vocab_size=8000, hidden_size=256, num_hidden_layers=4, num_attention_heads=8,
                        intermediate_size=1024)
    model = BertModel(config, add_pooling_layer=False).eval()
    items = texts(32 * 60)
    result = torch.empty(len(items), 256)
    steps, t0 = 0, time.time()
    for chosen, ids, mask in batches(items, 32):
        hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state
        weight = mask.unsqueeze(-1)
        result[chosen] = (hidden * weight).sum(1) / weight.sum(1)
        steps += 1
    print(result.norm(dim=1).mean().item(), f"{1000 * (time.time() - t0) / steps:.1f} ms/step")


if __name__ == "__main__":
    main()
