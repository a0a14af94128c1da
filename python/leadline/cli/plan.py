"""`leadline run --plan`: the most memory and time that a run with these options will cost on this machine."""

from __future__ import annotations

from collections.abc import Callable

from leadline.capture.config import Options
from leadline.capture.errors import ProfileError
from leadline.capture.forecast import LOOK_NS, USUAL_PATHS, Forecast, forecast
from leadline.cli.errors import CommandError
from leadline.units import duration, number, percent, size

_LIMIT = 0.01
"""The share of the time at which the number of events a second is given."""


def print_plan(options_of: Callable[[], Options]) -> None:
    """Try what the options ask for, for half a second, and say what it costs. Raises CommandError."""
    try:
        options = options_of()
        print(text(forecast(options), options))
    except ProfileError as error:
        raise CommandError(str(error)) from error


def text(found: Forecast, options: Options) -> str:
    """One screen."""
    memory = [
        ("session", f"{size(found.fixed_bytes)}"),
        (
            "call paths",
            f"{size(found.usual_paths_bytes)} for {number(USUAL_PATHS)}; {size(found.most_paths_bytes)} a thread "
            f"at the limit of {number(options.max_nodes)} (--max-nodes)",
        ),
    ]
    if found.sampled_thread_bytes:
        memory.append(("CPU samples", f"{size(found.sampled_thread_bytes)} a thread"))
    if found.window_bytes:
        most = number(options.trace_max_events)
        memory.append(("trace window", f"{size(found.window_bytes)} for {most} events (--trace-max-events)"))
    rate = _LIMIT * 1e9 / max(found.event_ns, 1.0)
    time = [
        (
            "events",
            f"{duration(found.event_ns)} for an operator, region or allocation: {percent(_LIMIT)} of a thread's time "
            f"at {number(round(rate, -3))} a second",
        ),
    ]
    if options.sample_hz:
        each = f"{options.sample_hz:g} a second, {duration(found.sample_ns)} each"
        time.append(("CPU samples", f"{each}: {percent(found.samples_share)} of a thread's CPU time"))
    if options.wait:
        each = f"{options.wait:g} samples a second, {duration(LOOK_NS)} each"
        time.append(("waits", f"{each}: {percent(found.looks_share)} of the time for each waiting thread"))
    each = f"every {options.flush_interval_s:g} s, {duration(found.segment_ns)} for {number(USUAL_PATHS)} call paths"
    time.append(("segments", f"{each}: {percent(found.segments_share)} of the time, on its own thread"))
    time.append(("limit", _limit(options)))
    lines = ["At most, on this machine; nothing was run.", "memory of each process"]
    lines += [f"  {name:<14}{words}" for name, words in memory]
    lines.append("time")
    lines += [f"  {name:<14}{words}" for name, words in time]
    return "\n".join(lines)


def _limit(options: Options) -> str:
    if not options.budget:
        return "none; --budget 1% sets one"
    after = f" after {options.budget_after_s / 60:g} min" if options.budget_after_s else ""
    return f"{options.budget:g} % of wall time{after} (--budget)"
