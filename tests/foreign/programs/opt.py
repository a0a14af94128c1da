"""An OPT of transformers: next words with validation after each pass over the data; texts generated in batches."""

import sys

import torch
from transformers import OPTConfig, OPTForCausalLM


def model() -> OPTForCausalLM:
    config = OPTConfig(
        vocab_size=300, hidden_size=48, ffn_dim=96, num_hidden_layers=3, num_attention_heads=4,
        max_position_embeddings=64, word_embed_proj_dim=48, pad_token_id=1, bos_token_id=0, eos_token_id=2,
    )  # fmt: skip
    return OPTForCausalLM(config)


@torch.no_grad()
def evaluate(net: OPTForCausalLM, texts: torch.Tensor) -> float:
    net.eval()
    losses = [net(input_ids=batch, labels=batch).loss for batch in texts.split(8)]
    net.train()
    return torch.stack(losses).mean().exp().item()


def train() -> None:
    net = model().train()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    texts, held_out = torch.randint(3, 300, (32, 24)), torch.randint(3, 300, (16, 24))
    for _ in range(3):
        for batch in texts[torch.randperm(len(texts))].split(8):
            loss = net(input_ids=batch, labels=batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        evaluate(net, held_out)


def infer() -> None:
    net = model().eval()
    for _ in range(3):
        net.generate(torch.randint(3, 300, (2, 8)), max_new_tokens=12, do_sample=True, top_k=20)


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
