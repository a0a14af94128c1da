"""Objects that are there after the warm-up are left out of garbage collection."""

from __future__ import annotations

import gc
from typing import Any

from leadline.remedies.base import Remedy
from leadline.remedies.trial import Trial


class GcFreeze(Remedy):
    name = "gc_freeze"
    changes = "calls gc.freeze() in the second step: collections skip objects that exist by then"

    def __init__(self, value: str = "") -> None:
        super().__init__(value)
        self._collections = 0

    def start(self, trial: Trial) -> None:
        trial.on_step(2, self._freeze)
        gc.callbacks.append(self._collected)

    def _freeze(self) -> None:
        gc.collect()
        gc.freeze()
        self._collections = 0

    def _collected(self, phase: str, facts: Any) -> None:
        self._collections += phase == "stop"

    def outcome(self, trial: Trial) -> str:
        if not gc.get_freeze_count():
            return "the program takes objects out of gc.freeze() itself"
        return "" if self._collections else "no garbage was collected in the measured steps"
