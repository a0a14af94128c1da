"""Matrix products and convolutions in bfloat16, by torch's autocast around each outermost module."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

from leadline.remedies.base import Remedy
from leadline.remedies.trial import Trial


class Autocast(Remedy):
    name = "autocast"
    changes = "runs each outermost module under torch.autocast in bfloat16; its outputs are float32 again"
    value = "bf16"
    choices = ("bf16", "fp16")
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
        forward, looks = module.forward, [self._looking(kind)]

        @functools.wraps(forward)
        def forward_in_low_precision(*arguments: Any, **named: Any) -> Any:
            if torch.is_autocast_enabled(device):
                self._already = True
            self._calls += 1
            with looks.pop() if looks else contextlib.nullcontext(), torch.autocast(device, kind):
                result = forward(*arguments, **named)
            return _as_float32(result, torch)

        if any(one.dtype == kind for one in module.parameters()):
            self._already = True
        module.forward = forward_in_low_precision

    def _looking(self, kind: Any) -> Any:
        """In the first call of a module: whether anything comes out in the type that was asked for."""
        from torch.overrides import TorchFunctionMode

        remedy = self

        class Looking(TorchFunctionMode):
            def __torch_function__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
                result = function(*arguments, **(named or {}))
                remedy._coarse += getattr(result, "dtype", None) == kind
                return result

        return Looking()

    def outcome(self, trial: Trial) -> str:
        if self._already:
            return f"the program runs in {self.precision} or under autocast already"
        if not self._calls:
            return "no module with parameters was called"
        if self.chosen == "fp16" and self._scaler.refused:
            return str(self._scaler.refused)
        if not self._coarse:
            return f"no module computes a result in {self.precision}"
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
