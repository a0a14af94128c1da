"""The GPT of `leadline demo` at a size whose step takes 100 ms or more on two cores."""

from __future__ import annotations

from collections.abc import Callable

import torch

from leadline.demo.gpt import GPT, GPTConfig

VOCABULARY = 64


def make_step(batch: int = 24, context: int = 128, width: int = 128) -> Callable[[], None]:
    torch.manual_seed(0)
    model = GPT(GPTConfig(VOCABULARY, context=context, width=width))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.randint(VOCABULARY, (batch, context + 1))

    def step() -> None:
        loss = model.loss(tokens[:, :-1], tokens[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()

    return step
