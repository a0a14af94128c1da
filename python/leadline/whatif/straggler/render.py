"""A straggler report as text, markdown or JSON (the keys of every what-if report)."""

from __future__ import annotations

import json
from typing import TypeVar

from leadline.units import change, duration, percent
from leadline.whatif.straggler.analysis import StragglerReport

Key = TypeVar("Key")

_WORTH_NAMING = 1.01
"""A slow-down below one percent is not listed as a finding."""

_ASSUMPTIONS = (
    "computations take the mean, communications the median of their kind over all workers and steps",
    "delays before operations that no dependency explains are left out of the comparison",
)


def as_json(report: StragglerReport) -> str:
    """Stable keys; every `_ns` is per step."""
    ideal = float(report.ideal_ns.mean())
    content = {
        "measured_ns": float(report.measured_ns.mean()),
        "replayed_ns": float(report.replayed_ns.mean()),
        "replay_error": report.replay_error,
        "steps": list(report.steps),
        "window": [0, float(report.measured_ns.sum())],
        "scenarios": [
            {
                "name": "no_straggler",
                "predicted_ns": ideal,
                "speedup": report.slowdown,
                "low_ns": float(report.ideal_ns.min()),
                "high_ns": float(report.simulated_ns.mean()),
                "assumptions": list(_ASSUMPTIONS),
                "applied_to": {"workers": len(report.worker_slowdown)},
            }
        ],
        "warnings": _findings(report),
    }
    return json.dumps(content, indent=2) + "\n"


def _findings(report: StragglerReport) -> list[str]:
    """Who slows the job, as sentences; the tables are in the text report and in the Python result."""
    found = [f"pipeline stage {key} alone slows the job by {value:.3f}" for key, value in _sorted(report.by_stage)]
    found += [f"data-parallel rank {key} alone: {value:.3f}" for key, value in _sorted(report.by_dp_rank)]
    found += [f"{key} alone: {value:.3f}" for key, value in _sorted(report.by_kind)]
    return [text for text in found if float(text.rsplit(" ", 1)[1]) >= _WORTH_NAMING]


def as_text(report: StragglerReport, *, markdown: bool = False) -> str:
    """What stragglers cost and who they are."""
    title = ["# Stragglers", ""] if markdown else []
    bullet = "- " if markdown else "  "
    measured, ideal = float(report.measured_ns.mean()), float(report.ideal_ns.mean())
    replayed = f"{duration(float(report.replayed_ns.mean()))} ({change(report.replay_error)})"
    lost = 1 - 1 / report.slowdown if report.slowdown else 0.0
    lines = [
        *title,
        f"Measured {duration(measured)} a step over {len(report.steps)} steps; replayed {replayed}.",
        f"Without stragglers a step would take {duration(ideal)}: {report.slowdown:.3f}x the speed, "
        f"{percent(lost)} of the "
        "time is lost to waiting for slow work.",
        "",
        "Slow-down by pipeline stage (only that stage as measured):",
    ]
    lines += [f"{bullet}stage {key}: {value:.3f}" for key, value in _sorted(report.by_stage)]
    lines += ["", "By data-parallel rank:"]
    lines += [f"{bullet}rank {key}: {value:.3f}" for key, value in _sorted(report.by_dp_rank)[:10]]
    lines += ["", "By operation:"]
    lines += [f"{bullet}{key}: {value:.3f}" for key, value in _sorted(report.by_kind)[:8]]
    numbers = ", ".join(str(worker) for worker in report.worst_workers)
    worst = (
        f"the slowest worker, rank {numbers}," if len(report.worst_workers) == 1 else f"the slowest ranks, {numbers},"
    )
    lines += [
        "",
        f"The last stage explains {_share(report.last_stage.removed_share)} of the loss, "
        f"{worst} {_share(report.worst.removed_share)}.",
        "Assumptions: " + "; ".join(_ASSUMPTIONS) + ".",
    ]
    return "\n".join(lines) + "\n"


def _sorted(values: dict[Key, float]) -> list[tuple[Key, float]]:
    return sorted(values.items(), key=lambda item: -item[1])


def _share(value: float) -> str:
    return percent(min(max(value, 0.0), 1.0))
