"""Threads of torch's operators."""

from __future__ import annotations

from typing import Any

from leadline.remedies.base import Remedy
from leadline.remedies.trial import Trial


class NumThreads(Remedy):
    name = "num_threads"
    changes = "runs operators on N threads (torch.set_num_threads, OMP_NUM_THREADS)"
    needs = "N"
    scenario = "cpu_threads"

    def check(self) -> None:
        self.number(1)
        self._before = 0

    @property
    def scenario_settings(self) -> dict[str, str]:
        return {"threads": self.chosen}

    def start(self, trial: Trial) -> None:
        trial.when_imported("torch", lambda torch: self._set(trial, torch))

    def _set(self, trial: Trial, torch: Any) -> None:
        """The program's own calls set nothing."""
        self._before = torch.get_num_threads()
        original = torch.set_num_threads
        original(self.number())

        def keep(number: int) -> None:
            self._before = number

        trial.replaced.everywhere("set_num_threads", original, keep)

    def outcome(self, trial: Trial) -> str:
        import torch

        if not self._before:
            return "the program does not import torch"
        if torch.get_num_threads() != self.number():
            return f"torch uses {torch.get_num_threads()} threads and cannot be changed"
        if self._before == self.number():
            return f"the program uses {self._before} threads already"
        return ""
