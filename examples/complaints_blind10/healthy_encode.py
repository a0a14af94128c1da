"""Encode passages for a search index with BERT of transformers: sorted by length, in batches of similar length."""
import time

import torch
from transformers import BertConfig, BertModel

PASSAGES, BATCH = 2400, 32


def make_model():
    config = BertConfig(vocab_size=8000, hidden_size=192, num_hidden_layers=4, num_attention_heads=6,
                        intermediate_size=768)
    return BertModel(config, add_pooling_layer=False).eval()


def make_passages():
    g = torch.Generator().manual_seed(0)
    lengths = torch.randint(12, 120, (PASSAGES,), generator=g)
    return [torch.randint(5, 8000, (int(n),), generator=g) for n in lengths]


@torch.inference_mode()
def encode(model, passages):
    order = sorted(range(len(passages)), key=lambda i: len(passages[i]))
    vectors = torch.empty(len(passages), model.config.hidden_size)
    for at in range(0, len(order), BATCH):
        rows = order[at:at + BATCH]
        ids = torch.nn.utils.rnn.pad_sequence([passages[i] for i in rows], batch_first=True)
        lengths = torch.tensor([len(passages[i]) for i in rows])
        mask = torch.arange(ids.shape[1]) < lengths[:, None]
        h = model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        mean = (h * mask[..., None]).sum(1) / lengths[:, None]
        vectors[rows] = torch.nn.functional.normalize(mean, dim=1)
    return vectors


def main():
    torch.manual_seed(0)
    model, passages = make_model(), make_passages()
    start = time.perf_counter()
    vectors = encode(model, passages)
    spent = time.perf_counter() - start
    query = vectors[:8] @ vectors.T
    print(f"{vectors.shape[0]} vectors, best {query.topk(2).indices[:, 1].tolist()}")
    print(f"{spent / (PASSAGES / BATCH) * 1e3:.1f} ms a batch")


if __name__ == "__main__":
    main()
