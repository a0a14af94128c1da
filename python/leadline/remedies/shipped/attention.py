"""The implementation behind scaled_dot_product_attention."""

from __future__ import annotations

import functools
from typing import Any

from leadline.remedies.base import Remedy
from leadline.remedies.trial import Trial

_SWITCHES = {"flash": "enable_flash_sdp", "efficient": "enable_mem_efficient_sdp", "math": "enable_math_sdp"}


class Sdpa(Remedy):
    name = "sdpa"
    changes = "allows one implementation of scaled_dot_product_attention only"
    needs = "flash|efficient|math"
    choices = ("flash", "efficient", "math")

    def __init__(self, value: str = "") -> None:
        super().__init__(value)
        self._calls = 0

    def start(self, trial: Trial) -> None:
        trial.when_imported("torch.backends.cuda", self._switch)
        trial.when_imported("torch.nn.functional", lambda module: self._follow(trial, module))

    def _switch(self, backends: Any) -> None:
        for name, switch in _SWITCHES.items():
            getattr(backends, switch)(name == self.chosen)
        if hasattr(backends, "enable_cudnn_sdp"):
            backends.enable_cudnn_sdp(False)

    def _follow(self, trial: Trial, functional: Any) -> None:
        original = functional.scaled_dot_product_attention

        @functools.wraps(original)
        def attention(*arguments: Any, **named: Any) -> Any:
            self._calls += 1
            return original(*arguments, **named)

        trial.replaced.everywhere("scaled_dot_product_attention", original, attention)

    def outcome(self, trial: Trial) -> str:
        return "" if self._calls else "the program does not call scaled_dot_product_attention"
