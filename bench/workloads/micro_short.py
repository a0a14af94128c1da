"""The micro workload with one layer instead of twenty: very many steps in little time."""

from __future__ import annotations

from collections.abc import Callable

from workloads import micro


def make_step() -> Callable[[], None]:
    return micro.make_step(layers=1)
