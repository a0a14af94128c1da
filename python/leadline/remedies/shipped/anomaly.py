"""Autograd without its anomaly detection."""

from __future__ import annotations

import functools
from typing import Any

from leadline.remedies.base import Remedy
from leadline.remedies.trial import Trial


class NoAnomaly(Remedy):
    name = "no_anomaly"
    changes = "turns autograd's anomaly detection off"

    def __init__(self, value: str = "") -> None:
        super().__init__(value)
        self._changed = 0

    def start(self, trial: Trial) -> None:
        trial.when_imported("torch", lambda torch: self._follow(trial, torch))

    def _follow(self, trial: Trial, torch: Any) -> None:
        original = torch.set_anomaly_enabled

        @functools.wraps(original)
        def off(mode: bool, check_nan: bool = True) -> Any:
            self._changed += mode
            return original(False, False)

        trial.replaced.attribute(torch, "set_anomaly_enabled", off)

    def outcome(self, trial: Trial) -> str:
        return "" if self._changed else "the program does not turn anomaly detection on"
