"""Programs that the benchmarks run. Each gives one training step as a function; none imports the profiler."""

from __future__ import annotations

import importlib
from collections.abc import Callable

NAMES = ("micro", "micro_deep", "micro_short", "indexing", "gpt", "gpt_thread", "gpt_tiny")


def load(name: str) -> Callable[[], None]:
    """The step function of a workload, ready to be called; raises KeyError for an unknown name."""
    if name not in NAMES:
        raise KeyError(f"there is no workload {name!r}; there are {', '.join(NAMES)}")
    module = importlib.import_module(f"workloads.{name}")
    step: Callable[[], None] = module.make_step()
    return step
