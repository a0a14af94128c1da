"""The outermost modules that a program trains (or calls, where it only infers), found when they are first called.

`Module.__call__` is another function until the first step has ended, then torch's own again: later steps pay nothing.
Of a program without optimizers it stays, since its calls are the steps.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leadline.remedies.trial import Trial


class OutermostModules:
    """`found`: in the order of their first call; `actions`: what is done with each."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._inside = threading.local()
        self._original: Any = None
        self._wrapper: Any = None
        self.actions: list[Callable[[Any], None]] = []
        self.found: list[Any] = []

    def install(self) -> None:
        self._trial.when_imported("torch.nn.modules.module", self._follow)

    def _follow(self, module: Any) -> None:
        original = module.Module.__call__
        inside = self._inside

        @functools.wraps(original)
        def called(this: Any, *arguments: Any, **named: Any) -> Any:
            if getattr(inside, "yes", False) or self._is_over(module):
                return original(this, *arguments, **named)
            try:
                has_parameters = next(this.parameters(), None) is not None
                if has_parameters and not any(one is this for one in self.found):
                    self.found.append(this)
                    for action in self.actions:
                        action(this)
            except Exception as error:
                self._trial.fault(error)
                has_parameters = False
            inside.yes = True
            try:
                result = original(this, *arguments, **named)
            finally:
                inside.yes = False
            if has_parameters and not self._trial.optimizers:
                self._trial.module_returned(result)
            return result

        self._original, self._wrapper = original, called
        module.Module.__call__ = called

    def _is_over(self, module: Any) -> bool:
        """The first optimizer step has been: torch's own function comes back."""
        if not self._trial.optimizers or self._trial.count < 1:
            return False
        if module.Module.__call__ is self._wrapper:
            module.Module.__call__ = self._original
        return True
