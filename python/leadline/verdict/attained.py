"""Attained time: what operators with known shapes reach of what this machine can do. It is no gain: small or thin
products cannot reach the rate of large ones.

The machine's rates are those of `leadline doctor --peak`, measured with as many threads as the program used (`leadline
why` measures them once, in a few seconds). Without rates, or without shapes (`--shapes`), nothing is said.
"""

from __future__ import annotations

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.case import Case
from leadline.analysis.columns import group_sums
from leadline.analysis.contention import contention
from leadline.analysis.devicerates import measured_rates, with_threads
from leadline.analysis.flops import flop_columns
from leadline.analysis.threads import of_operators
from leadline.units import percent

_MOST = 1.05
"""Of the rate: more says that the rate is of another machine, or was measured beside other work."""


_LEAST_NS = 5_000.0
"""No call of a product takes less, however small it is."""


@dataclass(frozen=True)
class Attained:
    """Of a step: `ns` in operators whose operations are known, `best_ns` that they take at the machine's rate."""

    ns: float
    best_ns: float

    @property
    def share(self) -> float:
        """0 to 1."""
        return min(self.best_ns / self.ns, 1.0) if self.ns > 0 else 0.0

    @property
    def words(self) -> str:
        """One fact."""
        return f"matrix products reach {percent(self.share)} of the rate that large ones reach on this machine"


def attained(case: Case) -> Attained | None:
    """Of products on the CPU; None where shapes or rates are missing, or contradict each other."""
    loop = case.known_loop
    if loop is None or case.has_device:
        return None
    rates = measured_rates().get(with_threads(case.profile.meta.get("host") or {}, of_operators(case.profile)[0]), {})
    columns = flop_columns(case.tree) if rates else None
    if columns is None or not columns.known:
        return None
    scopes = case.analysis.scopes
    thread = next((one for one in case.profile.threads if one.node.row == int(scopes.thread[loop.anchors[0]])), None)
    ran = contention(case.profile, thread, loop.of.main).operators_ran
    flops = np.where(loop.inside, columns.per_call * columns.worked(case.calls.astype(np.float64)), 0.0)
    rate = np.array([rates.get(name, 0.0) for name in columns.precision], np.float64)
    known = (flops > 0) & (rate > 0)
    if not known.any():
        return None
    time = group_sums(columns.owner, loop.time, len(case.tree)) * ran / loop.steps
    calls = case.calls.astype(np.float64) * _LEAST_NS
    best = np.where(known, np.maximum(flops / np.maximum(rate, 1.0) * 1e9, calls), 0.0) / loop.steps
    ns, least = float(time[known].sum()), float(best.sum())
    if ns <= 0 or float((flops[known] / rate[known]).sum()) * 1e9 / loop.steps > _MOST * ns:
        return None
    return Attained(ns, least)
