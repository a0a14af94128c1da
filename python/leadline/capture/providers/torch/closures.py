"""The closure that a program hands to `optimizer.step` as a phase of its own.

Forward and backward then run inside the optimizer (L-BFGS, and every step of PyTorch Lightning), and none of it is the
optimizer's work. Promises: the closure is called as before and its result and errors come back as they are.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from leadline.capture.native import Native

PHASE = "closure"
"""Modules inside show their forward phase, as they do outside the optimizer."""


class ClosurePhases:
    """Follows the optimizers of this process."""

    def __init__(self, native: Native) -> None:
        self._native = native
        # torch.optim hides the module behind its own names.
        optimizers: Any = importlib.import_module("torch.optim.optimizer")
        self._handle: Any = optimizers.register_optimizer_step_pre_hook(self._before_step)

    def uninstall(self) -> None:
        """Remove the hook; closures that run go on without a phase."""
        self._handle.remove()

    def _before_step(
        self, optimizer: Any, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """torch's hook. `arguments` begins with the optimizer; what is returned takes the place of both."""
        if callable(named.get("closure")):
            return arguments, {**named, "closure": self._phased(named["closure"])}
        if len(arguments) > 1 and callable(arguments[1]):
            return (arguments[0], self._phased(arguments[1]), *arguments[2:]), named
        return None

    def _phased(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        @functools.wraps(closure)
        def call_closure() -> Any:
            token = self._native.phase_begin(PHASE, outermost=True)
            try:
                return closure()
            finally:
                self._native.phase_end(token)

        return call_closure
