"""A T5 of transformers: teacher forcing with Adafactor, and beam search with a cache."""

import sys

import torch
from transformers import Adafactor, T5Config, T5ForConditionalGeneration


def model() -> T5ForConditionalGeneration:
    config = T5Config(
        vocab_size=400, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, decoder_start_token_id=0
    )
    return T5ForConditionalGeneration(config)


def train() -> None:
    net = model().train()
    optimizer = Adafactor(net.parameters(), lr=1e-3, relative_step=False, scale_parameter=False)
    for _ in range(5):
        source, target = torch.randint(2, 400, (4, 24)), torch.randint(2, 400, (4, 16))
        loss = net(input_ids=source, labels=target).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def infer() -> None:
    net = model().eval()
    source = torch.randint(2, 400, (2, 24))
    print(net.generate(source, num_beams=3, max_new_tokens=12, min_new_tokens=12).shape)


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
