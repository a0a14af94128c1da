"""What engines that serve do now, as metrics of Prometheus: from the same account that the profile holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Metric = tuple[str, str, str, list[tuple[dict[str, str], float]]]
_TIMES = (("ttft", "time to first token"), ("tpot", "time per output token"), ("e2e", "time of a request"))
_QUANTILES = (("p50", "0.5"), ("p99", "0.99"))
_POINT = (
    (1, "leadline_engine_requests_waiting", "Requests in the engine's queue", 1.0),
    (2, "leadline_engine_requests_running", "Requests in the engine's batch", 1.0),
    (3, "leadline_engine_cache_used_ratio", "Share of the key-value cache in use", 1e-3),
)


def engine_metrics(engines: Sequence[Mapping[str, Any]]) -> list[Metric]:
    """Name, type, help and values; nothing where no engine serves. Quantiles are of the last minute."""
    if not engines:
        return []
    own = [({"engine": str(one["engine"]), "number": str(i)}, one) for i, one in enumerate(engines)]
    rates = [(labels, float(one["recent"]["tokens_per_s"])) for labels, one in own]
    made: list[Metric] = [
        ("leadline_engine_tokens_per_second", "gauge", "Output tokens a second in the last minute", rates)
    ]
    for at, name, text, factor in _POINT:
        last = [(labels, one["points"][-1][at] * factor) for labels, one in own if one["points"]]
        made.append((name, "gauge", text, [(labels, value) for labels, value in last if value >= 0]))
    ended = [({**labels, "reason": why}, float(count)) for labels, one in own for why, count in one["ended"].items()]
    made.append(("leadline_engine_requests_total", "counter", "Requests that ended, by reason", ended))
    preempted = [(labels, float(one["preemptions"])) for labels, one in own]
    made.append(("leadline_engine_preemptions_total", "counter", "Requests that lost their cache", preempted))
    for key, text in _TIMES:
        values = [
            ({**labels, "quantile": quantile}, one["recent"][key][name] * 1e-9)
            for labels, one in own
            if key in one["recent"]
            for name, quantile in _QUANTILES
        ]
        made.append((f"leadline_engine_{key}_seconds", "gauge", f"Quantiles of {text} in the last minute", values))
    return [one for one in made if one[3]]
