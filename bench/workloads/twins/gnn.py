"""Two rounds of messages along the edges of a random graph, added up at each node."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from workloads.twins.train import Step, jax_cross_entropy, jax_normal, jax_step, torch_step

NODES, EDGES, WIDTHS, CLASSES = 2000, 16000, (64, 128, 128), 10


def in_torch() -> Step:
    import torch
    from torch import nn

    class Messages(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            pairs = list(pairwise(WIDTHS))
            self.own = nn.ModuleList(nn.Linear(into, out) for into, out in pairs)
            self.sent = nn.ModuleList(nn.Linear(into, out, bias=False) for into, out in pairs)
            self.head = nn.Linear(WIDTHS[-1], CLASSES)

        def forward(self, hidden: Any) -> Any:
            for own, sent in zip(self.own, self.sent, strict=True):
                messages = sent(hidden)[source]
                gathered = torch.zeros(NODES, messages.shape[1]).index_add(0, target, messages)
                hidden = torch.relu(own(hidden) + gathered)
            return self.head(hidden)

    features, labels = torch.randn(NODES, WIDTHS[0]), torch.randint(0, CLASSES, (NODES,))
    source, target = torch.randint(0, NODES, (2, EDGES))
    return torch_step(Messages(), lambda model: nn.functional.cross_entropy(model(features), labels))


def in_jax() -> Step:
    import jax
    import jax.numpy as jnp

    rounds = [
        {"own": jax_normal(into, out), "b": jnp.zeros(out), "sent": jax_normal(into, out, seed=1)}
        for into, out in pairwise(WIDTHS)
    ]
    weights = {"rounds": rounds, "head": {"w": jax_normal(WIDTHS[-1], CLASSES), "b": jnp.zeros(CLASSES)}}
    features, labels = jax_normal(NODES, WIDTHS[0]), jnp.arange(NODES) % CLASSES
    source, target = jax.random.randint(jax.random.key(1), (2, EDGES), 0, NODES)

    def loss_of(weights: Any) -> Any:
        hidden = features
        for layer in weights["rounds"]:
            messages = (hidden @ layer["sent"])[source]
            gathered = jnp.zeros((NODES, messages.shape[1])).at[target].add(messages)
            hidden = jax.nn.relu(hidden @ layer["own"] + layer["b"] + gathered)
        return jax_cross_entropy(hidden @ weights["head"]["w"] + weights["head"]["b"], labels)

    return jax_step(weights, loss_of)
