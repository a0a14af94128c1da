"""Borders of steps for a session that leaves steps out: the end of the optimizer's step, also in a pause."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from leadline.capture.providers.torch.optimizer_rounds import OptimizerRounds


class StepBorders:
    """Calls `border` behind each optimizer step that ends a step of the program."""

    def __init__(self, border: Callable[[], None]) -> None:
        self._border = border
        self._rounds = OptimizerRounds()
        self._ends = False
        self._handles: list[Any] = []

    def install(self) -> None:
        """Follow all optimizers."""
        optimizers: Any = importlib.import_module("torch.optim.optimizer")
        self._handles = [
            optimizers.register_optimizer_step_pre_hook(self._before),
            optimizers.register_optimizer_step_post_hook(self._after),
        ]

    def uninstall(self) -> None:
        """Undo `install`."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _before(self, optimizer: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._ends = self._rounds.begins(optimizer)

    def _after(self, optimizer: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        if self._ends:
            self._ends = False
            self._border()
