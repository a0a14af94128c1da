"""Measuring a function in this process and reading the profile back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import leadline

torch = pytest.importorskip("torch", reason="these tests measure real PyTorch; install torch==2.13.0 to run them")


class Measure:
    """Runs a function under Leadline and opens what was written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runs = 0

    def __call__(self, function: Callable[[], object], **options: object) -> leadline.profiles.Profile:
        self._runs += 1
        path = self._folder / f"run{self._runs}.leadline"
        with leadline.profile(path, **options):
            function()
        return leadline.open(path)


@pytest.fixture
def measure(tmp_path: Path) -> Measure:
    torch.manual_seed(0)
    return Measure(tmp_path)
