"""What `leadline run` samples, and what it may cost, where nothing else is asked for."""

from __future__ import annotations

import argparse

from leadline.capture.config import LONG_RUN_S, USUAL_BUDGET, USUAL_SAMPLE_HZ, USUAL_WAIT_HZ
from leadline.cli.percent import percent

NO_LIMIT = "none"


def samples(arguments: argparse.Namespace) -> dict[str, object]:
    """At the rate that was asked for, none, or by default a few. Other options that sample bring their own rate."""
    if arguments.no_cpu_sample:
        return {"cpu_sample": 0.0, "wait": arguments.wait}
    if arguments.cpu_sample >= 0:
        return {"cpu_sample": arguments.cpu_sample, "wait": arguments.wait}
    if arguments.native or arguments.counter or arguments.wait:
        return {"cpu_sample": 0.0, "wait": arguments.wait}
    return {"cpu_sample": USUAL_SAMPLE_HZ, "wait": USUAL_WAIT_HZ, "cpu_sample_unasked": True}


def limit(arguments: argparse.Namespace) -> dict[str, object]:
    """Of the overhead, as asked; else the usual one of long runs, but where every event was asked for. Raises
    CommandError."""
    if arguments.budget == NO_LIMIT:
        return {}
    if arguments.budget:
        return {"budget": percent("--budget", arguments.budget, f"1%, or {NO_LIMIT}")}
    if arguments.trace or arguments.duty or arguments.tool or arguments.instructions or arguments.gpu_metrics:
        return {}
    return {"budget": USUAL_BUDGET, "budget_after_s": LONG_RUN_S}
