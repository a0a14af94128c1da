"""A Llama of transformers through torch.compile: forward and backward by Inductor, and a compiled forward alone."""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def model() -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=300, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, use_cache=False,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def train() -> None:
    net = model().train()
    compiled = torch.compile(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for _ in range(6):
        tokens = torch.randint(0, 300, (4, 32))
        compiled(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@torch.no_grad()
def infer() -> None:
    compiled = torch.compile(model().eval())
    for length in (16, 16, 24, 32):  # the third is compiled again, for any length
        compiled(input_ids=torch.randint(0, 300, (2, length))).logits.argmax(-1)


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
