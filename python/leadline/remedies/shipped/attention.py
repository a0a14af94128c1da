"""The implementation behind scaled_dot_product_attention."""

from __future__ import annotations

import functools
from typing import Any

from leadline.remedies.base import Remedy
from leadline.remedies.trial import Trial

_SWITCHES = {"flash": "flash_sdp", "efficient": "mem_efficient_sdp", "math": "math_sdp", "cudnn": "cudnn_sdp"}
_ENABLE, _NUMBERS = "enable_", {"math": 0, "flash": 1, "efficient": 2}
"""Numbers of torch.nn.attention.SDPBackend."""


class Sdpa(Remedy):
    name = "sdpa"
    changes = "allows one implementation of scaled_dot_product_attention only"
    needs = "flash|efficient|math"
    choices = ("flash", "efficient", "math")

    def __init__(self, value: str = "") -> None:
        super().__init__(value)
        self._calls = 0
        self._changed = 0
        self._refusal = ""

    def start(self, trial: Trial) -> None:
        trial.when_imported("torch.nn.functional", lambda module: self._follow(trial, module))

    def _switch(self, only: str) -> None:
        """One implementation, or all."""
        import torch

        for name, switch in _SWITCHES.items():
            set_it = getattr(torch.backends.cuda, _ENABLE + switch, None)
            if set_it is not None:
                set_it(not only or name == only)

    def _follow(self, trial: Trial, functional: Any) -> None:
        original = functional.scaled_dot_product_attention

        @functools.wraps(original)
        def attention(*arguments: Any, **named: Any) -> Any:
            self._calls += 1
            if self._calls == 1:
                self._changed += _chosen_for(arguments, named) != _NUMBERS[self.chosen]
                self._switch(self.chosen)
            if self._refusal:
                return original(*arguments, **named)
            try:
                return original(*arguments, **named)
            except RuntimeError as error:
                if "kernel" not in str(error) and "backend" not in str(error):
                    raise
                self._switch("")
                self._refusal = f"torch has no {self.chosen} implementation for these tensors on {_device(arguments)}"
                return original(*arguments, **named)

        trial.replaced.everywhere("scaled_dot_product_attention", original, attention)

    def outcome(self, trial: Trial) -> str:
        if not self._calls:
            return "the program does not call scaled_dot_product_attention"
        return self._refusal or ("" if self._changed else f"torch chooses {self.chosen} for it already")


def _chosen_for(arguments: tuple[Any, ...], named: dict[str, Any]) -> int:
    """What torch chooses where all are allowed; -1 where it does not say."""
    import torch

    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    given = {**dict(zip(names, arguments, strict=False)), **named}
    try:
        query, key, value = (given.pop(name) for name in names[:3])
        return int(torch._fused_sdp_choice(query, key, value, **given))
    except (RuntimeError, TypeError, AttributeError, KeyError):
        return -1


def _device(arguments: tuple[Any, ...]) -> str:
    kind = getattr(getattr(arguments[0] if arguments else None, "device", None), "type", "cpu")
    return "this CPU" if kind == "cpu" else "this device"
