"""What `leadline doctor` looks at: a list of sections, each a module with `TITLE` and `check()`."""

from __future__ import annotations

import importlib
from typing import Protocol, cast

from leadline._dataclass import dataclass

OK = "ok"
LIMITED = "limited"
FAILED = "failed"
"""Levels: works; works with less than there could be, or is not here; should work and does not."""

SECTIONS: tuple[str, ...] = (
    "leadline.cli.checks.installation",
    "leadline.cli.checks.interpreter",
    "leadline.cli.checks.pytorch",
    "leadline.cli.checks.nvidia",
    "leadline.cli.checks.amd",
    "leadline.cli.checks.event_tools",
    "leadline.cli.checks.output",
    "leadline.cli.checks.system",
)
"""In the order they are shown."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    name: str
    """Short and stable: a key for programs, a first column for people."""
    level: str
    """OK, LIMITED or FAILED."""
    text: str
    """What was found, as one sentence or less."""
    advice: str = ""
    """What to do about it; empty where there is nothing to do."""


class Section(Protocol):
    """What a section's module offers."""

    TITLE: str

    def check(self) -> list[Finding]:
        """Look, and say what was found; raises nothing for what may be found on a machine."""


def sections() -> list[Section]:
    """All of them, imported."""
    return [cast(Section, importlib.import_module(name)) for name in SECTIONS]
