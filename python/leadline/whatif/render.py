"""A prediction report as text, markdown or JSON."""

from __future__ import annotations

import json
import math
from typing import Any

from leadline.units import change, duration, percent
from leadline.whatif.advice import advice
from leadline.whatif.predict import Prediction, Report


def as_json(report: Report) -> str:
    """Stable keys; every `_ns` is per step. An infinite speed-up is null."""
    content: dict[str, Any] = {
        "measured_ns": report.measured_ns,
        "replayed_ns": report.replayed_ns,
        "replay_error": report.replay_error,
        "causal_error": report.causal_error,
        "steps": list(report.steps),
        "window": list(report.window),
        "scenarios": [_scenario(prediction) for prediction in report.scenarios],
        "warnings": list(report.warnings),
        "not_applicable": dict(report.not_applicable),
        "coverage": report.coverage,
    }
    if report.ledger:
        content["ledger"] = [
            {"sort": row.sort, "name": row.name, "spent_ns": row.spent_ns, "confidence": row.confidence}
            for row in report.ledger
        ]
    return json.dumps(content, indent=2) + "\n"


def _scenario(prediction: Prediction) -> dict[str, Any]:
    return {
        "name": prediction.name,
        "title": prediction.title,
        "hypothetical": prediction.hypothetical,
        "samples": prediction.samples,
        "predicted_ns": prediction.predicted_ns,
        "speedup": _finite(prediction.speedup),
        "low_ns": prediction.low_ns,
        "high_ns": prediction.high_ns,
        "low_gain": _finite(prediction.low_gain),
        "high_gain": _finite(prediction.high_gain),
        "verdict": prediction.verdict,
        "assumptions": list(prediction.assumptions),
        "applied_to": dict(prediction.applied_to),
        "warnings": list(prediction.warnings),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def as_text(report: Report, *, ranked: bool) -> str:
    """For a terminal. `ranked` adds the advice and what did not apply."""
    lines = [headline(report), ""]
    if report.scenarios:
        width = max(len(prediction.title) for prediction in report.scenarios)
        lines.append(f"{'what if':<{width}}  {'step':>9}  {'range':>21}  {'gain':>6}  {'range':>15}  verdict")
        previous = (False, False)
        for prediction in report.scenarios:
            apart = prediction.hypothetical, prediction.samples != 1
            if apart != previous and prediction is not report.scenarios[0]:
                lines.append("")  # questions about hardware, and steps of more samples, stand apart from advice
            previous = apart
            lines.append(
                f"{prediction.title:<{width}}  {duration(prediction.predicted_ns):>9}  {_extent(prediction):>21}  "
                f"{prediction.speedup:>5.2f}x  {_gains(prediction):>15}  {prediction.verdict}"
            )
        lines += ["", *_beside(report, ranked=ranked), ""]
    lines += _explanation(report, ranked=ranked)
    return "\n".join(lines).rstrip() + "\n"


def _beside(report: Report, *, ranked: bool) -> list[str]:
    """What holds for all rows; single predictions say themselves what was left out of them."""
    told = report.recording[:1].upper() + report.recording[1:]
    return [report.coverage, *([f"{told}."] if told and ranked else [])]


def _extent(prediction: Prediction) -> str:
    """The range; one value where both ends read the same."""
    low, high = duration(prediction.low_ns), duration(prediction.high_ns)
    return low if low == high else f"{low} - {high}"


def _gains(prediction: Prediction) -> str:
    low, high = f"{prediction.low_gain:.2f}x", f"{prediction.high_gain:.2f}x"
    return low if low == high else f"{low} - {high}"


def as_markdown(report: Report, *, ranked: bool) -> str:
    """The same content with a table."""
    lines = ["# What if", "", headline(report), ""]
    if report.scenarios:
        lines += ["| what if | step | low | high | gain | range | verdict |", "|---|---:|---:|---:|---:|---:|---|"]
        lines += [
            f"| {prediction.title} | {duration(prediction.predicted_ns)} | {duration(prediction.low_ns)} | "
            f"{duration(prediction.high_ns)} | {prediction.speedup:.2f}x | {_gains(prediction)} | "
            f"{prediction.verdict} |"
            for prediction in report.scenarios
        ]
        lines += ["", *_beside(report, ranked=ranked), ""]
    lines += _explanation(report, ranked=ranked, markdown=True)
    return "\n".join(lines).rstrip() + "\n"


def headline(report: Report) -> str:
    steps = f"{len(report.steps)} step" + ("s" if len(report.steps) != 1 else "")
    return (
        f"Measured {duration(report.measured_ns)} a step over {steps}; replay error {change(report.replay_error)}, "
        f"model error (without recorded gaps) {change(report.causal_error)}."
    )


def _ledger(report: Report, *, markdown: bool) -> list[str]:
    """The rows of the ledger, with a sentence on how to read them."""
    total = sum(row.spent_ns for row in report.ledger) or 1.0
    lines = [
        "Time along the critical path. Confidence is the share of a residual that is as long as others of its "
        "class; the rest has no known cause.",
        "",
    ]
    if markdown:
        lines += ["| time | share | sort | what | confidence |", "|---:|---:|---|---|---:|"]
    for row in report.ledger:
        cells = (
            duration(row.spent_ns),
            percent(row.spent_ns / total),
            row.sort,
            row.name,
            percent(row.confidence),
        )
        lines.append(
            "| " + " | ".join(cells) + " |"
            if markdown
            else f"{cells[0]:>9}  {cells[1]:>6}  {cells[2]:<8}  {cells[3]:<42}  {cells[4]:>5}"
        )
    return [*lines, ""]


def _explanation(report: Report, *, ranked: bool, markdown: bool = False) -> list[str]:
    lines: list[str] = _ledger(report, markdown=markdown) if report.ledger else []
    if ranked:
        lines += [*advice(report), ""]
        if report.not_applicable:
            lines.append("Not tried:")
            lines += [f"- {name}: {reason}" for name, reason in report.not_applicable.items()]
            lines.append("")
    else:
        for prediction in report.scenarios:
            touched = ", ".join(f"{number} {what}" for what, number in prediction.applied_to.items())
            lines.append(f"Assumptions of {prediction.title}:")
            lines += [f"- {text}" for text in prediction.assumptions]
            lines += [f"- applied to {touched}" if touched else "- nothing in the trace had to change", ""]
    if report.warnings:
        lines.append("Warnings:")
        lines += [f"- {text}" for text in report.warnings]
    return lines
