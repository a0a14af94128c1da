"""The micro workload below 200 Python functions that call each other: what a deep stack above the model costs."""

from __future__ import annotations

from collections.abc import Callable

from workloads import micro


def make_step() -> Callable[[], None]:
    return micro.make_step(below=200)
