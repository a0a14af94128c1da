"""A small GPT in plain PyTorch, with module names that users know (`transformer.h.0.attn`).

Decoder-only transformer with pre-layer-norm blocks, learned positions and tied embeddings, as in GPT-2 (Radford et al.,
"Language Models are Unsupervised Multitask Learners", 2019, section 2.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class GPTConfig:
    """Sizes of the model. The defaults give about 0.9 million parameters."""

    vocabulary: int
    context: int = 128
    layers: int = 4
    heads: int = 4
    width: int = 128
    dropout: float = 0.1

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")


class CausalSelfAttention(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.dropout = config.dropout
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.proj = nn.Linear(config.width, config.width)

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, time, width); so is the result."""
        batch, time, width = x.shape
        heads = [part.view(batch, time, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(width, dim=2)]
        query, key, value = heads
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
        joined: Tensor = self.proj(y.transpose(1, 2).reshape(batch, time, width))
        return joined


class MLP(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.fc = nn.Linear(config.width, 4 * config.width)
        self.act = nn.GELU()
        self.proj = nn.Linear(4 * config.width, config.width)
        self.drop = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.drop(self.proj(self.act(self.fc(x))))
        return y


class Block(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.width)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = nn.LayerNorm(config.width)
        self.mlp = MLP(config)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        x = x + self.mlp(self.ln_2(x))
        return x


class Transformer(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.wte = nn.Embedding(config.vocabulary, config.width)
        self.wpe = nn.Embedding(config.context, config.width)
        self.drop = nn.Dropout(config.dropout)
        self.h = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.ln_f = nn.LayerNorm(config.width)

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens: (batch, time) of int64; result: (batch, time, width)."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.drop(self.wte(tokens) + self.wpe(positions))
        for block in self.h:
            x = block(x)
        normed: Tensor = self.ln_f(x)
        return normed


class GPT(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.transformer = Transformer(config)
        self.lm_head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.apply(self._initialize)
        self.lm_head.weight = self.transformer.wte.weight

    @staticmethod
    def _initialize(module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens: (batch, time) of int64; result: logits (batch, time, vocabulary)."""
        logits: Tensor = self.lm_head(self.transformer(tokens))
        return logits

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy in nats per token; tokens and targets: (batch, time) of int64."""
        logits = self(tokens)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    @torch.no_grad()
    def generate(self, tokens: Tensor, count: int) -> Tensor:
        """`count` tokens more, sampled one by one; tokens: (batch, time), result: (batch, time + count)."""
        for _ in range(count):
            logits = self(tokens[:, -self.config.context :])[:, -1]
            chosen = torch.multinomial(logits.softmax(dim=-1), num_samples=1)
            tokens = torch.cat([tokens, chosen], dim=1)
        return tokens
