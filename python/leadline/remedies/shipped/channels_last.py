"""Weights and images of convolutions with channels last in memory."""

from __future__ import annotations

from typing import Any

from leadline.remedies.base import Remedy
from leadline.remedies.trial import Trial


class ChannelsLast(Remedy):
    name = "channels_last"
    changes = "stores the weights and inputs of 2-d convolutions with channels last"

    def __init__(self, value: str = "") -> None:
        super().__init__(value)
        self._layers = 0
        self._inputs = 0

    def start(self, trial: Trial) -> None:
        trial.on_module(self._convert)

    def _convert(self, module: Any) -> None:
        import torch

        if not any(isinstance(one, torch.nn.Conv2d) for one in module.modules()):
            return
        self._layers += 1
        module.to(memory_format=torch.channels_last)

        def convert(this: Any, arguments: Any, named: Any) -> Any:
            return tuple(map(self._converted, arguments)), {key: self._converted(one) for key, one in named.items()}

        module.register_forward_pre_hook(convert, with_kwargs=True)

    def _converted(self, value: Any) -> Any:
        import torch

        if isinstance(value, torch.Tensor) and value.dim() == 4 and value.is_floating_point():
            self._inputs += 1
            return value.contiguous(memory_format=torch.channels_last)
        return value

    def outcome(self, trial: Trial) -> str:
        if not self._layers:
            return "the program has no 2-d convolution"
        return "" if self._inputs else "the modules with convolutions take no images of four dimensions"
