"""Train the small GPT: python -m leadline.demo.train [--steps N]. An ordinary PyTorch program."""

from __future__ import annotations

import argparse
import time

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from .gpt import GPT, GPTConfig
from .text import make_text


class Characters(Dataset[tuple[Tensor, Tensor]]):
    """Windows of characters and the same windows one character later."""

    def __init__(self, text: str, context: int) -> None:
        self.alphabet = sorted(set(text))
        self.numbers = {character: number for number, character in enumerate(self.alphabet)}
        self.text = text
        self.context = context

    def __len__(self) -> int:
        return len(self.text) - self.context - 1

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        window = self.encode(self.text[index : index + self.context + 1])
        return window[:-1], window[1:]

    def encode(self, text: str) -> Tensor:
        """One int64 per character."""
        return torch.tensor([self.numbers[character] for character in text])

    def decode(self, tokens: Tensor) -> str:
        return "".join(self.alphabet[number] for number in tokens.tolist())


def train(steps: int, batch: int, seed: int) -> float:
    """Train for `steps` steps, print the loss now and then and a sample at the end; returns the last loss."""
    torch.manual_seed(seed)
    context = 128
    data = Characters(make_text(200_000, seed), context)
    loader = DataLoader(data, batch_size=batch, shuffle=True, drop_last=True)
    model = GPT(GPTConfig(vocabulary=len(data.alphabet), context=context))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"GPT with {parameters / 1e6:.2f} million parameters, {steps} steps of {batch} x {context} characters")

    value = float("nan")
    start = time.perf_counter()
    for step, (tokens, targets) in zip(range(1, steps + 1), loader, strict=False):
        loss = model.loss(tokens, targets)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        value = loss.item()
        if step % 20 == 0 or step == steps:
            print(
                f"step {step:4d}  loss {value:.3f}  {1e3 * (time.perf_counter() - start) / step:.0f} ms a step",
                flush=True,
            )

    model.eval()
    sample = model.generate(data.encode("The captain ").unsqueeze(0), 60)
    print(f"sample: {data.decode(sample[0])!r}")
    return value


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small GPT on generated text.")
    parser.add_argument("--steps", type=int, default=150, help="training steps")
    parser.add_argument("--batch", type=int, default=16, help="windows of text in a step")
    parser.add_argument("--seed", type=int, default=0, help="of the text, the weights and the order")
    arguments = parser.parse_args()
    train(arguments.steps, arguments.batch, arguments.seed)


if __name__ == "__main__":
    main()
