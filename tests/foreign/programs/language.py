"""A language model of x-transformers, trained and generating as in its example."""

import sys

import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper


def model() -> AutoregressiveWrapper:
    layers = Decoder(dim=48, depth=2, heads=4, rotary_pos_emb=True, use_rmsnorm=True)
    return AutoregressiveWrapper(TransformerWrapper(num_tokens=64, max_seq_len=48, attn_layers=layers))


def train() -> None:
    net = model().train()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    for _ in range(6):
        for _ in range(2):
            (net(torch.randint(0, 64, (2, 33))) / 2).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()


def infer() -> None:
    net = model().eval()
    for _ in range(2):
        net.generate(torch.randint(0, 64, (2, 4)), 12)


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
