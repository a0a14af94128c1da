"""What a summary has to know of a model for a second opinion on its operations: parameters, and attention's sizes."""

from __future__ import annotations

from typing import Any


def model_facts(model: Any) -> dict[str, Any]:
    """`parameters` that take part in products: all but look-up tables, a table that is the output layer too, of experts
    the share that a token meets. `trainable` of them; `layers` and `attention_width` (heads times their width) where a
    transformers configuration says. Raises AttributeError for what is no torch module."""
    tables: set[int] = set()
    products: set[int] = set()
    for module in model.modules():
        kind = type(module).__name__
        weight = getattr(module, "weight", None)
        if weight is not None:
            (tables if "Embedding" in kind else products).add(id(weight))
    config = getattr(model, "config", None)
    met = _number(config, "num_experts_per_tok") / max(
        _number(config, "num_local_experts", "num_experts", "n_routed_experts"), 1
    )
    parameters = trainable = 0.0
    for name, parameter in model.named_parameters():
        if id(parameter) in tables and id(parameter) not in products:
            continue
        count = parameter.numel() * (met if met and "experts" in name and "shared" not in name else 1)
        parameters += count
        trainable += count if parameter.requires_grad else 0
    heads = _number(config, "num_attention_heads", "n_head", "num_heads")
    width = heads * _number(config, "head_dim", "d_kv") or _number(config, "hidden_size", "n_embd", "d_model")
    return {
        "parameters": int(parameters),
        "trainable": int(trainable),
        "layers": _number(config, "num_hidden_layers", "n_layer", "num_layers"),
        "attention_width": width if heads else 0,
    }


def _number(config: Any, *names: str) -> int:
    for name in names:
        value = getattr(config, name, None)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return 0
