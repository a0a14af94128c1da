"""A Mamba of transformers, without its kernels; words generated one by one from its state."""

import sys

import torch
from transformers import MambaConfig, MambaForCausalLM


def model() -> MambaForCausalLM:
    return MambaForCausalLM(MambaConfig(vocab_size=200, hidden_size=32, num_hidden_layers=2, state_size=8))


def train() -> None:
    net = model().train()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, foreach=True)
    for _ in range(8):
        words = torch.randint(0, 200, (4, 32))
        loss = net(input_ids=words, labels=words).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def infer() -> None:
    net = model().eval()
    for _ in range(3):
        net.generate(torch.randint(0, 200, (2, 8)), max_new_tokens=10, do_sample=False)


if __name__ == "__main__":
    {"train": train, "infer": infer}[sys.argv[1]]()
