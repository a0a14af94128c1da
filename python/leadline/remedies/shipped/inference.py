"""Evaluation without autograd's bookkeeping."""

from __future__ import annotations

from typing import Any

from leadline.remedies.base import Remedy
from leadline.remedies.trial import Trial


class InferenceMode(Remedy):
    name = "inference_mode"
    changes = "runs outermost modules that are in evaluation mode under torch.inference_mode"

    def __init__(self, value: str = "") -> None:
        super().__init__(value)
        self._calls = 0

    def start(self, trial: Trial) -> None:
        trial.on_module(self._wrap)

    def _wrap(self, module: Any) -> None:
        import torch

        forward = module.forward

        def forward_in_inference(*arguments: Any, **named: Any) -> Any:
            if module.training or torch.is_inference_mode_enabled():
                return forward(*arguments, **named)
            self._calls += 1
            with torch.inference_mode():
                return forward(*arguments, **named)

        module.forward = forward_in_inference

    def outcome(self, trial: Trial) -> str:
        return "" if self._calls else "no module was called in evaluation mode outside of inference_mode"
