"""Matrix products and convolutions in bfloat16, by torch's autocast around each outermost module."""

from __future__ import annotations

import functools
from typing import Any

from leadline.remedies.base import Remedy
from leadline.remedies.trial import Trial


class Autocast(Remedy):
    name = "autocast"
    changes = "runs each outermost module under torch.autocast in bfloat16; its outputs are float32 again"
    value = "bf16"
    choices = ("bf16", "fp16")
    rules = ("double_precision", "slow_type", "roofline")
    scenario = "amp"

    def __init__(self, value: str = "") -> None:
        super().__init__(value)
        self.precision = "bfloat16" if self.chosen == "bf16" else "float16"
        self._calls = 0
        self._coarse = 0
        self._already = False
        self._scaler: Any = None

    def start(self, trial: Trial) -> None:
        trial.on_module(self._wrap)
        if self.chosen == "fp16":
            from leadline.remedies.shipped.scaler import Scaler

            self._scaler = Scaler(trial)
            self._scaler.install()

    def _wrap(self, module: Any) -> None:
        import torch

        device = next(module.parameters()).device.type
        kind = torch.bfloat16 if self.chosen == "bf16" else torch.float16
        forward = module.forward

        @functools.wraps(forward)
        def forward_in_low_precision(*arguments: Any, **named: Any) -> Any:
            if torch.is_autocast_enabled(device):
                self._already = True
            self._calls += 1
            with torch.autocast(device, kind):
                result = forward(*arguments, **named)
            return _as_float32(result, torch)

        for one in module.modules():
            if isinstance(one, torch.nn.Linear | torch.nn.modules.conv._ConvNd):
                self._look_once(one, kind)
        if any(one.dtype == kind for one in module.parameters()):
            self._already = True
        module.forward = forward_in_low_precision

    def _look_once(self, module: Any, kind: Any) -> None:
        """Whether one product has come out in the type that was asked for; the hook takes itself away."""

        def look(this: Any, arguments: Any, output: Any) -> None:
            self._coarse += getattr(output, "dtype", None) == kind
            handle.remove()

        handle = module.register_forward_hook(look)

    def outcome(self, trial: Trial) -> str:
        if self._already:
            return f"the program runs in {self.precision} or under autocast already"
        if not self._calls:
            return "no module with parameters was called"
        if self.chosen == "fp16" and self._scaler.refused:
            return str(self._scaler.refused)
        if not self._coarse:
            return f"no linear or convolution layer ran in {self.precision}"
        return ""


def _as_float32(output: Any, torch: Any) -> Any:
    if isinstance(output, torch.Tensor):
        return output.float() if output.dtype in (torch.bfloat16, torch.float16) else output
    if isinstance(output, list | tuple) and not hasattr(output, "_fields"):
        return type(output)(_as_float32(one, torch) for one in output)
    if isinstance(output, dict):
        for key, one in list(output.items()):
            converted = _as_float32(one, torch)
            if converted is not one:
                output[key] = converted
    return output
