"""An engine as the key `serving` of the JSON report (docs/json-report.md), with the tables that every host shows."""

from __future__ import annotations

from typing import Any

from leadline._histogram import Histogram
from leadline.engines import words
from leadline.engines.model import MOST_SLOWEST, Engine, SlowRequest
from leadline.engines.waited import waited_for

_COUNTS = ("prompt_tokens", "output_tokens", "cached_tokens")
"""Values of a request that are no times."""


def serving_object(engine: Engine | None) -> dict[str, Any] | None:
    """None where no engine served. Times are nanoseconds, shares are of 1."""
    if engine is None:
        return None
    return {
        "engine": engine.name,
        "version": engine.version,
        "engines": engine.count,
        "pids": list(engine.pids),
        "moved": engine.moved,
        "serving_ns": engine.serving_ns,
        "steps_ns": engine.steps_ns,
        "between_steps_ns": engine.gap.total,
        "no_work_ns": engine.no_work_ns,
        "output_tokens_per_s": engine.tokens_per_s,
        "ended": dict(engine.ended),
        "open": engine.open,
        "oldest_open_ns": engine.oldest_open_ns,
        "preemptions": engine.preemptions,
        "logprobs_requests": engine.logprobs_requests,
        "prompt_logprobs_requests": engine.prompt_logprobs_requests,
        "not_followed": engine.not_followed,
        "earlier": engine.earlier,
        "odd_arrivals": engine.odd_arrivals,
        "requests": {_key(name): _distribution(one) for name, one in engine.requests.items()},
        "steps": {kind: _distribution(one) for kind, one in engine.steps.items()},
        "between_steps": _distribution(engine.gap),
        "batch": {name: _distribution(one) for name, one in engine.batch.items()},
        "cache_used": _distribution(engine.cache, 1000),
        "slowest": [_slow(one) for one in engine.slowest],
        "series": [_point(point) for point in engine.points],
        "facts": words.facts(engine),
        "tables": [
            {"heads": list(one.heads), "rows": [list(row) for row in one.rows], "note": one.note}
            for one in words.tables(engine, MOST_SLOWEST)
        ],
    }


def _key(name: str) -> str:
    return name if name in _COUNTS else f"{name}_ns"


def _distribution(one: Histogram, unit: int = 1) -> dict[str, float]:
    """Quantiles are off by at most 3.1 %."""
    quantiles = {f"p{round(100 * share)}": one.quantile(share) / unit for share in words.QUANTILES}
    return {
        "count": one.count,
        "sum": one.total / unit if unit > 1 else one.total,
        "min": one.least / unit,
        **quantiles,
        "max": one.most / unit,
    }


def _slow(one: SlowRequest) -> dict[str, Any]:
    name, ns = waited_for(one)
    values = {_key(key): value for key, value in one.values.items() if key not in ("at_ms", "preemptions")}
    return {
        "id": one.name,
        "trace_id": one.trace,
        "arrived_ms": one.at_ms,
        "reason": one.reason,
        "preemptions": one.preemptions,
        **values,
        "waited_for": name,
        "waited_ns": ns,
    }


def _point(point: tuple[int, ...]) -> dict[str, float | None]:
    ms, waiting, running, cache, ended = point
    return {
        "ms": ms,
        "waiting": waiting,
        "running": running,
        "cache_used": cache / 1000 if cache >= 0 else None,
        "ended": ended,
    }
