"""A program without dropout."""

from __future__ import annotations

from typing import Any

from leadline.remedies.base import Remedy
from leadline.remedies.trial import Trial


class NoDropout(Remedy):
    name = "no_dropout"
    changes = "sets the probability of every dropout layer to 0"
    computes_else = True

    def __init__(self, value: str = "") -> None:
        super().__init__(value)
        self._changed = 0

    def start(self, trial: Trial) -> None:
        trial.on_module(self._without)

    def _without(self, module: Any) -> None:
        import torch

        for one in module.modules():
            for name in ("p", "dropout", "attention_dropout", "hidden_dropout", "dropout_p"):
                value = getattr(one, name, None)
                is_layer = isinstance(one, torch.nn.modules.dropout._DropoutNd)
                if isinstance(value, float) and value > 0 and (is_layer or "dropout" in name):
                    setattr(one, name, 0.0)
                    self._changed += 1

    def outcome(self, trial: Trial) -> str:
        return "" if self._changed else "the program has no dropout"
