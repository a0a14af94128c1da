"""A report in the words of a colleague: what to do, what it should gain, on what that rests."""

from __future__ import annotations

from leadline.units import change, duration
from leadline.whatif.predict import WORTH_DOING, Prediction, Report
from leadline.whatif.scenarios import SCENARIOS


def advice(report: Report) -> list[str]:
    """One paragraph per finding, the most useful first; never empty."""
    lines = [_recommend(number, prediction, report) for number, prediction in enumerate(useful(report), start=1)]
    if not lines:
        lines.append(f"No scenario makes the step of {duration(report.measured_ns)} more than one percent faster.")
    open_ = [p for p in report.scenarios if not p.hypothetical and p.verdict == "cannot tell" and not _costs_time(p)]
    if open_:
        parts = [f"{p.title} ({p.low_gain:.2f}x to {p.high_gain:.2f}x)" for p in open_]
        lines.append("This trace does not show whether these gain: " + ", ".join(parts) + ".")
    slower = [p for p in report.scenarios if not p.hypothetical and p.verdict == "slower" and not _costs_time(p)]
    if slower:
        lines.append("These would cost time: " + ", ".join(p.title for p in slower) + ".")
    memory = [p for p in report.scenarios if _costs_time(p)]
    if memory:
        parts = [f"{p.title} {_change(p)}" for p in memory]
        lines.append("To save memory: " + "; ".join(parts) + ".")
    lines += _bound_by(report)
    kernels = [p for p in report.scenarios if p.name == "kernel_speedup" and p.speedup >= WORTH_DOING]
    lines += [f"Largest single kernel: {p.assumptions[0]}; that would give {p.speedup:.2f}x." for p in kernels]
    return lines


def useful(report: Report) -> tuple[Prediction, ...]:
    """What is worth doing: what is likely to gain, then what possibly does, the largest gain first in each."""
    chosen = [p for p in report.scenarios if not p.hypothetical and not _costs_time(p) and p.speedup >= WORTH_DOING]
    known = (p for p in chosen if p.verdict in ("likely", "possible"))
    return tuple(sorted(known, key=lambda p: (p.samples != 1, p.low_gain <= 1, p.verdict, -p.speedup)))


def _recommend(number: int, prediction: Prediction, report: Report) -> str:
    words = prediction.advice[:1].upper() + prediction.advice[1:]
    low, high = prediction.low_gain, prediction.high_gain
    per = "samples a second" if prediction.samples != 1 else "speed"
    certain = "" if prediction.verdict == "likely" else " It may also gain nothing."
    basis = "; ".join(prediction.assumptions[:2])
    extent = f" ({low:.2f}x to {high:.2f}x)" if f"{low:.2f}" != f"{high:.2f}" else ""
    return (
        f"{number}. {words}: {prediction.verdict}, {prediction.speedup:.2f}x the {per}{extent}, "
        f"{duration(report.replayed_ns)} -> {duration(prediction.predicted_ns)} a step.{certain} "
        f"Basis: {basis}."
    )


def _bound_by(report: Report) -> list[str]:
    """What the step waits for, from the answers to `faster`."""
    devices = {p.title.split()[1]: p for p in report.scenarios if p.name == "faster" and len(p.title.split()) > 1}
    if not devices:
        return []
    best = max(devices.values(), key=lambda p: p.speedup)
    if best.speedup < WORTH_DOING:
        return ["No single device limits the step: twice the speed of any one gains less than one percent."]
    others = ", ".join(f"{name} {p.speedup:.2f}x" for name, p in devices.items() if p is not best)
    device = best.title.split()[1]
    tail = f" ({others})" if others else ""
    return [f"The step is bound most by the {device}: one twice as fast would give {best.speedup:.2f}x{tail}."]


def _costs_time(prediction: Prediction) -> bool:
    parts = set(prediction.name.split("+"))
    return any(scenario.costs_time for scenario in SCENARIOS if scenario.name in parts)


def _change(prediction: Prediction) -> str:
    more = 1 / prediction.speedup - 1 if prediction.speedup else float("inf")
    saving = next((text for text in prediction.assumptions if "activations" in text), "")
    return f"costs {change(more)} time" + (f" ({saving})" if saving else "")
