"""Part of `data_loading`: whether the loop waits in bursts, so that batches which are made ahead would help."""

from __future__ import annotations

from leadline.analysis.rules.base import Case
from leadline.analysis.rules.processes import loading_at_once

_IDLE = 0.3
"""Of the workers' time: those with less to spare are the steady bottleneck, and a longer queue only fills later."""
_SPREAD = 1.0
"""Standard deviation over mean of the wait for a batch: below it, every batch is waited for about as long."""
_LONG = 10
"""Batches of a pass for each worker: at the end of a short pass the queue is empty, however long it may be."""


def in_bursts(case: Case, row: int, workers: int) -> bool:
    """`row`: the phase in which the loop waits for its batches. Raising `prefetch_factor` helps where workers have
    nothing to do for a part of the time and the loop waits later."""
    waited = case.tree.exclusive("call_time")
    number = int(waited.count[row])
    if not number or 1 - loading_at_once(case) / workers < _IDLE:
        return False
    mean = int(waited.sum[row]) / number
    deviation = max(float(waited.sum_squares[row]) / number - mean * mean, 0.0) ** 0.5
    passes = max(number - case.loop.steps, 1)  # each ends with one call more than it has batches
    return deviation >= _SPREAD * mean and number >= _LONG * workers * passes
