"""Healthy: embed documents with a BERT encoder, in length-sorted batches, without gradients."""
import argparse
import time

import torch
from transformers import BertConfig, BertModel

VOCAB = 8000


def documents(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(24, 120, (count,), generator=generator).tolist()
    return [torch.randint(1, VOCAB, (length,), generator=generator) for length in lengths]


def length_batches(docs, size):
    order = sorted(range(len(docs)), key=lambda number: len(docs[number]), reverse=True)
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        tokens = torch.nn.utils.rnn.pad_sequence([docs[row] for row in rows], batch_first=True)
        yield rows, tokens, (tokens != 0).long()


def embed(model, tokens, mask):
    hidden = model(input_ids=tokens, attention_mask=mask).last_hidden_state
    weight = mask.unsqueeze(-1).to(hidden.dtype)
    pooled = (hidden * weight).sum(dim=1) / weight.sum(dim=1)
    return torch.nn.functional.normalize(pooled, dim=-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, default=512)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=VOCAB,
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=8,
        intermediate_size=1024,
        max_position_embeddings=128,
    )
    model = BertModel(config, add_pooling_layer=False).eval()
    docs = documents(args.documents)
    vectors = torch.empty(len(docs), config.hidden_size)
    started = time.perf_counter()
    with torch.inference_mode():
        for rows, tokens, mask in length_batches(docs, args.batch_size):
            vectors[rows] = embed(model, tokens, mask)
    seconds = time.perf_counter() - started
    nearest = (vectors[:100] @ vectors.T).topk(2, dim=1).values[:, 1].mean()
    print(f"mean similarity to the nearest other document {nearest:.3f}")
    print(f"{len(docs) / seconds:.0f} documents/s")


if __name__ == "__main__":
    main()
