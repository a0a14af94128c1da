"""Of what type a program's modules are once it has converted them, and how many threads and cores its operators have.

Costs something when a module is converted (`half()`, `to()`), nothing when it runs; holds no module.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

_MOST_TYPES = 8
_MOST_PARAMETERS = 10_000
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


class ModuleTypes:
    """Parameters by type, of the outermost module that was converted last."""

    def __init__(self) -> None:
        self._inside = False
        self._numbers: dict[str, int] = {}

    def after(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`Module._apply`, which every conversion ends in; it calls itself for the modules inside."""

        @functools.wraps(original)
        def converted(module: Any, *arguments: Any, **named: Any) -> Any:
            if self._inside:
                return original(module, *arguments, **named)
            self._inside = True
            try:
                return original(module, *arguments, **named)
            finally:
                self._inside = False
                with contextlib.suppress(Exception):  # a module of the program's own may be anything
                    self._look(module)

        return converted

    def _look(self, module: Any) -> None:
        numbers: dict[str, int] = {}
        for one in islice(module.parameters(), _MOST_PARAMETERS):
            name = str(one.dtype).removeprefix("torch.")
            numbers[name] = numbers.get(name, 0) + int(one.numel())
        if len(numbers) <= _MOST_TYPES:
            self._numbers = numbers

    def facts(self) -> dict[str, int]:
        """Number of parameters by type; empty where no module was converted."""
        return dict(self._numbers)


def threads() -> dict[str, int]:
    """`threads` that an operator may use; `cores` that this process may use. Empty without torch."""
    torch = sys.modules.get("torch")
    with contextlib.suppress(Exception):
        number = int(torch.get_num_threads()) if torch is not None else 0
        if number > 0:
            return {"threads": number, "cores": cores()}
    return {}


def cores() -> int:
    """Its affinity, cut by the quota of its control group, at least 1."""
    number = len(os.sched_getaffinity(0))
    with contextlib.suppress(OSError, ValueError):
        quota, period = _QUOTA.read_text().split()[:2]
        if quota != "max":
            number = min(number, max(1, round(int(quota) / int(period))))
    return number
