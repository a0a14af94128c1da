"""Models of other families than those that factors and ranges were chosen with: what the accuracy of the rest is worth.

Three are the transformers library's own code, with random weights; the others are written here. Nobody may choose a
factor with their measurements in hand: whoever does moves them to the others, and writes new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

CLASSES = 10
WORDS = 2000
"""Size of the vocabularies."""
TOKENS, NODES, EDGES = 32, 32, 128


@dataclass(frozen=True)
class Family:
    """A model and what it learns from. `inputs` and `labels` take the batch size; `build` whether it drops out and
    whether it normalises batches, where it has a choice."""

    build: Callable[[bool, bool], nn.Module]
    inputs: Callable[[int], torch.Tensor]
    labels: Callable[[int], torch.Tensor]
    sample: tuple[int, ...] = ()
    """Shape of one sample of a DataLoader; empty where the inputs are no plain numbers."""


class Translator(nn.Module):
    """T5: an encoder and a decoder with relative positions; predicts the next word."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        from transformers import T5Config, T5ForConditionalGeneration

        self.body = T5ForConditionalGeneration(
            T5Config(
                vocab_size=WORDS, d_model=128, d_kv=32, d_ff=512, num_layers=2, num_heads=4, dropout_rate=dropout,
                use_cache=False,
            )
        ).train()  # fmt: skip

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.body(input_ids=tokens, decoder_input_ids=tokens, use_cache=False).logits
        return scores.transpose(1, 2)


class Patches(nn.Module):
    """ViT over 8 by 8 patches of a small image."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import ViTConfig, ViTForImageClassification

        self.body = ViTForImageClassification(
            ViTConfig(
                hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512, image_size=32,
                patch_size=4, id2label={number: str(number) for number in range(CLASSES)},
            )
        ).train()  # fmt: skip

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.body(pixel_values=images).logits
        return scores


class StateSpace(nn.Module):
    """Mamba: a scan over the tokens, of many small operators without its CUDA kernels."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import MambaConfig, MambaModel

        self.body = MambaModel(
            MambaConfig(vocab_size=WORDS, hidden_size=48, state_size=8, num_hidden_layers=2, use_cache=False)
        ).train()
        self.head = nn.Linear(48, CLASSES)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.body(input_ids=tokens).last_hidden_state.mean(1))
        return scores


class UNet(nn.Module):
    """Two levels down and up again with what was there; classifies each pixel."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.enter, self.down = _two_convolutions(3, width), _two_convolutions(width, 2 * width)
        self.middle = _two_convolutions(2 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.back2 = _two_convolutions(4 * width, 2 * width)
        self.up1 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.back1 = _two_convolutions(2 * width, width)
        self.head = nn.Conv2d(width, CLASSES, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        high = self.enter(images)
        low = self.down(nn.functional.max_pool2d(high, 2))
        middle = self.up2(self.middle(nn.functional.max_pool2d(low, 2)))
        low = self.up1(self.back2(torch.cat([middle, low], dim=1)))
        scores: torch.Tensor = self.head(self.back1(torch.cat([low, high], dim=1)))
        return scores


def _two_convolutions(before: int, after: int) -> nn.Module:
    layers: list[nn.Module] = []
    for channels in (before, after):
        layers += [nn.Conv2d(channels, after, 3, padding=1), nn.GroupNorm(4, after), nn.LeakyReLU(0.1)]
    return nn.Sequential(*layers)


class Tagger(nn.Module):
    """A GRU in both directions over embedded words; a tag for each."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 64)
        self.body = nn.GRU(64, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, CLASSES)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.body(self.words(words))[0])
        return scores.transpose(1, 2)


class Messages(nn.Module):
    """Three rounds of messages along the edges of one graph; classifies the sum of its nodes."""

    source: torch.Tensor
    target: torch.Tensor

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        ends = torch.randint(0, NODES, (2, EDGES), generator=torch.Generator().manual_seed(2))
        self.register_buffer("source", ends[0])
        self.register_buffer("target", ends[1])
        self.enter = nn.Linear(16, width)
        self.message = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(3))
        self.update = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(3))
        self.head = nn.Linear(width, CLASSES)

    def forward(self, nodes: torch.Tensor) -> torch.Tensor:
        state = self.enter(nodes)
        for message, update in zip(self.message, self.update, strict=True):
            ends = torch.cat([state.index_select(1, self.source), state.index_select(1, self.target)], dim=-1)
            arrived = torch.zeros_like(state).index_add(1, self.target, torch.relu(message(ends)))
            state = state + torch.tanh(update(torch.cat([state, arrived], dim=-1)))
        scores: torch.Tensor = self.head(state.sum(1))
        return scores


class Inverted(nn.Module):
    """Inverted residuals with depthwise convolutions, and channels weighed by their mean."""

    def __init__(self, batch_norm: bool, channels: int = 24) -> None:
        super().__init__()
        wide = 4 * channels
        self.enter = nn.Conv2d(3, channels, 3, stride=2, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(channels, wide, 1, bias=False), *_normal(batch_norm, wide), nn.Hardswish(),
                nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False), *_normal(batch_norm, wide),
                nn.Hardswish(), nn.Conv2d(wide, channels, 1, bias=False), *_normal(batch_norm, channels),
            )
            for _ in range(3)
        )  # fmt: skip
        self.gates = nn.ModuleList(nn.Linear(channels, channels) for _ in range(3))
        self.head = nn.Linear(channels, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        hidden = self.enter(images)
        for block, gate in zip(self.blocks, self.gates, strict=True):
            added = block(hidden)
            hidden = hidden + added * torch.sigmoid(gate(added.mean((2, 3))))[:, :, None, None]
        scores: torch.Tensor = self.head(hidden.mean((2, 3)))
        return scores


def _normal(batch_norm: bool, channels: int) -> list[nn.Module]:
    return [nn.BatchNorm2d(channels)] if batch_norm else []


class Experts(nn.Module):
    """Four experts; each sample goes to the one that its gate prefers."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.enter, self.gate = nn.Linear(128, width), nn.Linear(width, 4)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.Softplus(), nn.Linear(4 * width, width)) for _ in range(4)
        )
        self.head = nn.Linear(width, CLASSES)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = self.enter(inputs)
        weight, chosen = self.gate(hidden).softmax(1).max(1)
        out = torch.zeros_like(hidden)
        for number, expert in enumerate(self.experts):
            mine = (chosen == number).nonzero()[:, 0]
            out = out.index_add(0, mine, weight[mine, None] * expert(hidden[mine]))
        scores: torch.Tensor = self.head(hidden + out)
        return scores


def _words(batch: int) -> torch.Tensor:
    return torch.randint(0, WORDS, (batch, TOKENS))


def _classes(*shape: int) -> Callable[[int], torch.Tensor]:
    return lambda batch: torch.randint(0, CLASSES, (batch, *shape))


def _numbers(*shape: int) -> Callable[[int], torch.Tensor]:
    return lambda batch: torch.randn(batch, *shape)


IMAGE = (3, 32, 32)
FAMILIES: Mapping[str, Family] = {
    "t5": Family(lambda drop, _: Translator(0.1 if drop else 0.0), _words, _words),
    "vit": Family(lambda *_: Patches(), _numbers(*IMAGE), _classes(), IMAGE),
    "mamba": Family(lambda *_: StateSpace(), _words, _classes()),
    "unet": Family(lambda *_: UNet(), _numbers(*IMAGE), _classes(*IMAGE[1:]), IMAGE),
    "tagger": Family(lambda *_: Tagger(), _words, _classes(TOKENS)),
    "messages": Family(lambda *_: Messages(), _numbers(NODES, 16), _classes(), (NODES, 16)),
    "inverted": Family(lambda _, norm: Inverted(norm), _numbers(*IMAGE), _classes(), IMAGE),
    "experts": Family(lambda *_: Experts(), _numbers(128), _classes(), (128,)),
}
