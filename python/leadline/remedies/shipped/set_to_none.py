"""zero_grad() drops gradients instead of filling them with zeros."""

from __future__ import annotations

import functools
from typing import Any

from leadline.remedies.base import Remedy
from leadline.remedies.trial import Trial


class SetToNone(Remedy):
    name = "set_to_none"
    changes = "calls zero_grad(set_to_none=True) where the program fills gradients with zeros"

    def __init__(self, value: str = "") -> None:
        super().__init__(value)
        self._changed = 0

    def start(self, trial: Trial) -> None:
        trial.when_imported("torch.optim.optimizer", lambda module: self._follow(trial, module.Optimizer))
        trial.when_imported("torch.nn.modules.module", lambda module: self._follow(trial, module.Module))

    def _follow(self, trial: Trial, owner: Any) -> None:
        original = owner.zero_grad

        @functools.wraps(original)
        def zero_grad(this: Any, set_to_none: bool = True) -> Any:
            self._changed += not set_to_none
            return original(this, set_to_none=True)

        trial.replaced.attribute(owner, "zero_grad", zero_grad)

    def outcome(self, trial: Trial) -> str:
        return "" if self._changed else "the program does not fill gradients with zeros"
