"""What measuring knows at this moment, in Prometheus's text format. Nothing is read from files for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.capture.current import CURRENT
from leadline.capture.engine_metrics import engine_metrics
from leadline.capture.requests import REQUESTS, RouteCounts

if TYPE_CHECKING:
    from leadline.capture.handle import Current

_OF_SESSION = (
    ("callbacks_ns", "leadline_callback_seconds_total", "counter", "Overhead: time in callbacks of all threads", 1e-9),
    ("flush_ns", "leadline_flush_seconds_total", "counter", "Overhead: time writing segments", 1e-9),
    ("events", "leadline_events_total", "counter", "Events seen", 1),
    ("held_bytes", "leadline_held_bytes", "gauge", "Memory that measuring holds", 1),
    ("nodes", "leadline_call_paths", "gauge", "Call paths known", 1),
    ("threads", "leadline_threads", "gauge", "Threads seen", 1),
    ("steps", "leadline_steps_total", "counter", "Training steps ended", 1),
)


def metrics_text(current: Current) -> str:
    """Every metric with its help and type, ends with a newline."""
    session = CURRENT.session
    labels = dict(session.labels) if session is not None else {}
    lines: list[str] = []

    def metric(name: str, kind: str, text: str, values: list[tuple[dict[str, str], float]]) -> None:
        lines.append(f"# HELP {name} {text}.")
        lines.append(f"# TYPE {name} {kind}")
        lines.extend(f"{name}{_labels({**labels, **own})} {value:.9g}" for own, value in values)

    metric("leadline_running", "gauge", "Whether something is measured now", [({}, float(current.running))])
    stats = current.stats()
    if stats is not None:
        for key, name, kind, text, factor in _OF_SESSION:
            if key in stats.cost:
                metric(name, kind, text, [({}, float(stats.cost[key]) * factor)])
        lost = [({"kind": str(kind)}, float(_count(told))) for kind, told in sorted(stats.losses.items())]
        metric("leadline_losses_total", "counter", "What could not be measured", lost)
    if session is not None:
        for name, kind, text, values in engine_metrics(session.engines()):
            metric(name, kind, text, values)
    routes = sorted(REQUESTS.routes.items())
    if routes:
        name, text = "leadline_request_seconds", "Requests by route"
        lines += [f"# HELP {name} {text}.", f"# TYPE {name} summary"]
        for route, one in routes:
            own = _labels({**labels, "route": route})
            lines += [f"{name}_sum{own} {one.total_ns * 1e-9:.9g}", f"{name}_count{own} {one.count}"]
        metric("leadline_requests_open", "gauge", "Requests that have not ended", _of(routes, "open"))
        metric("leadline_requests_failed_total", "counter", "Requests that raised", _of(routes, "failed"))
        longest = [(own, value * 1e-9) for own, value in _of(routes, "longest_ns")]
        metric("leadline_request_longest_seconds", "gauge", "The longest request so far", longest)
    return "\n".join(lines) + "\n"


def _of(routes: list[tuple[str, RouteCounts]], name: str) -> list[tuple[dict[str, str], float]]:
    return [({"route": route}, float(getattr(one, name))) for route, one in routes]


def _count(told: object) -> int:
    """Of the native side's list: how often, and why."""
    count = told[0] if isinstance(told, list) and told else 0
    return count if isinstance(count, int) else 0


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in sorted(labels.items())) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
