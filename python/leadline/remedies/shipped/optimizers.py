"""Optimizers that update all parameters in one kernel (fused) or in a few (foreach), as their own option does it."""

from __future__ import annotations

import functools
import inspect
from typing import Any, ClassVar

from leadline.remedies.base import Remedy
from leadline.remedies.trial import Trial


class _Form(Remedy):
    option: ClassVar[str]
    other: ClassVar[str]

    def __init__(self, value: str = "") -> None:
        super().__init__(value)
        self._set: list[Any] = []
        self._reasons: dict[str, None] = {}

    def start(self, trial: Trial) -> None:
        trial.when_imported("torch.optim.optimizer", lambda module: self._follow(trial, module))

    def _follow(self, trial: Trial, module: Any) -> None:
        """Each class of optimizers is made to take the option when the first of its kind is made."""
        original = module.Optimizer.__init_subclass__

        def subclass(cls: Any, **named: Any) -> None:
            original(**named)
            self._patch(cls)

        made: Any = subclass
        module.Optimizer.__init_subclass__ = classmethod(made)
        waiting = list(module.Optimizer.__subclasses__())
        for cls in waiting:
            waiting.extend(cls.__subclasses__())
            self._patch(cls)

    def _patch(self, cls: Any) -> None:
        original = vars(cls).get("__init__")
        if original is None:
            return
        known = inspect.signature(original).parameters
        if self.option not in known:
            return

        @functools.wraps(original)
        def made(this: Any, *arguments: Any, **named: Any) -> Any:
            bound = inspect.signature(original).bind_partial(this, *arguments, **named).arguments
            if type(this) is not cls:  # a subclass calls it, and says itself what it wants
                return original(this, *arguments, **named)
            if bound.get(self.option):
                self._reasons[f"{cls.__name__} is {self.option} already"] = None
                return original(this, *arguments, **named)
            changed = {**named, self.option: True}
            if self.other in known:
                changed[self.other] = None if self.other == "foreach" else False
            try:
                original(this, *arguments, **changed)
            except (RuntimeError, ValueError, TypeError) as error:
                self._reasons[f"{cls.__name__} refuses it: {error}"] = None
                return original(this, *arguments, **named)
            self._set.append(this)

        cls.__init__ = made

    def outcome(self, trial: Trial) -> str:
        used = [one for one in trial.optimizers if any(one is ours for ours in self._set)]
        if used and all(group.get(self.option) for one in used for group in one.param_groups):
            return ""
        if self._reasons:
            return "; ".join(self._reasons)
        kinds = sorted({type(one).__name__ for one in trial.optimizers})
        if not kinds:
            return "the program has no optimizer of torch"
        return f"{' and '.join(kinds)} has no {self.option} form"


class FusedOptimizer(_Form):
    name = "fused_optimizer"
    changes = "makes optimizers with fused=True"
    option = "fused"
    other = "foreach"
    scenario = "fused_optimizer"


class ForeachOptimizer(_Form):
    name = "foreach_optimizer"
    changes = "makes optimizers with foreach=True"
    option = "foreach"
    other = "fused"
