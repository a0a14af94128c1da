"""What one run of a trial is told, as JSON in the file that LEADLINE_TRIAL names. Standard library only."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from leadline._dataclass import dataclass

VARIABLE = "LEADLINE_TRIAL"
SCHEMA = 1


@dataclass(frozen=True)
class Plan:
    """`folder`: where each process leaves its record; `remedies`: (name, value, file of the user's or empty)."""

    folder: str
    steps: int
    warm_up: int
    remedies: tuple[tuple[str, str, str], ...] = ()
    mark: str = ""
    """What ends a step, as the first run found it; empty: the first that the program shows."""
    program: str = ""
    """With the mark "program calls": the compiled program whose calls are counted."""
    seed: int = 0
    rounding: float = 0.0
    """Parameters are changed once by this relative amount, to learn how the program amplifies rounding."""
    redraw: int = 0
    """Other random numbers from the first call of the outermost module on, by this number; 0: the program's own."""
    most_bytes: int = 4 << 30
    """Parameters that are larger are compared by a sample of each tensor and its norm."""
    look: bool = False
    """Note ports, and files outside of the working directory."""

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Plan:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return cls(**{**values, "remedies": tuple(tuple(one) for one in values["remedies"])})
