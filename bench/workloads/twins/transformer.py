"""Two blocks of a decoder with causal attention; predicts the next token."""

from __future__ import annotations

from typing import Any

from workloads.twins.train import Step, jax_cross_entropy, jax_normal, jax_step, torch_step

BATCH, CONTEXT, WIDTH, HEADS, BLOCKS, WORDS = 8, 64, 128, 4, 2, 1000


def in_torch() -> Step:
    import torch
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

        def forward(self, hidden: Any) -> Any:
            parts = self.project(self.before(hidden)).chunk(3, dim=-1)
            query, key, value = (part.view(BATCH, CONTEXT, HEADS, -1).transpose(1, 2) for part in parts)
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            hidden = hidden + self.out(mixed.transpose(1, 2).reshape(BATCH, CONTEXT, WIDTH))
            return hidden + self.feed(self.between(hidden))

    model = nn.Sequential(nn.Embedding(WORDS, WIDTH), *[Block() for _ in range(BLOCKS)], nn.Linear(WIDTH, WORDS))
    tokens = torch.randint(0, WORDS, (BATCH, CONTEXT))
    return torch_step(
        model, lambda model: functional.cross_entropy(model(tokens).view(-1, WORDS), tokens.roll(-1, 1).view(-1))
    )


def in_jax() -> Step:
    import jax
    import jax.numpy as jnp

    def linear(into: int, out: int) -> Any:
        return {"w": jax_normal(into, out), "b": jnp.zeros(out)}

    def normal() -> Any:
        return {"scale": jnp.ones(WIDTH), "shift": jnp.zeros(WIDTH)}

    blocks = [
        {
            "before": normal(), "between": normal(), "project": linear(WIDTH, 3 * WIDTH), "out": linear(WIDTH, WIDTH),
            "up": linear(WIDTH, 4 * WIDTH), "down": linear(4 * WIDTH, WIDTH),
        }
        for _ in range(BLOCKS)
    ]  # fmt: skip
    weights = {"words": jax_normal(WORDS, WIDTH), "blocks": blocks, "head": linear(WIDTH, WORDS)}
    tokens = jax.random.randint(jax.random.key(1), (BATCH, CONTEXT), 0, WORDS)
    hidden_later = jnp.where(jnp.tril(jnp.ones((CONTEXT, CONTEXT), bool)), 0.0, -jnp.inf)

    def apply(layer: Any, hidden: Any) -> Any:
        return hidden @ layer["w"] + layer["b"]

    def normalised(layer: Any, hidden: Any) -> Any:
        mean, spread = hidden.mean(-1, keepdims=True), hidden.var(-1, keepdims=True)
        return (hidden - mean) / jnp.sqrt(spread + 1e-5) * layer["scale"] + layer["shift"]

    def block_of(hidden: Any, block: Any) -> Any:
        parts = jnp.split(apply(block["project"], normalised(block["before"], hidden)), 3, axis=-1)
        query, key, value = (part.reshape(BATCH, CONTEXT, HEADS, -1).transpose(0, 2, 1, 3) for part in parts)
        scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5 + hidden_later
        mixed = (jax.nn.softmax(scores) @ value).transpose(0, 2, 1, 3).reshape(BATCH, CONTEXT, WIDTH)
        hidden = hidden + apply(block["out"], mixed)
        up = jax.nn.gelu(apply(block["up"], normalised(block["between"], hidden)), approximate=False)
        return hidden + apply(block["down"], up)

    def loss_of(weights: Any) -> Any:
        hidden = weights["words"][tokens]
        for block in weights["blocks"]:
            hidden = block_of(hidden, block)
        return jax_cross_entropy(apply(weights["head"], hidden).reshape(-1, WORDS), jnp.roll(tokens, -1, 1).reshape(-1))

    return jax_step(weights, loss_of)
