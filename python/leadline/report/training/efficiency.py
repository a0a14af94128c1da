"""The section `Efficiency` of a summary, counted from shapes."""

from __future__ import annotations

from leadline.report.markup import code, escaped, table
from leadline.report.training.model import TrainingSummary
from leadline.units import change, duration, number, percent, share


def efficiency(summary: TrainingSummary) -> str:
    """Operations, MFU, the second opinion, and the rate of each class; empty where nothing ran."""
    found = summary.efficiency
    if found is None:
        return "### Efficiency\n\nNot measured: set `shapes` to count operations." if summary.started_at_ns else ""
    over = "recorded step" if found.scope == "recorded steps" else "step of the run"
    lines = [
        f"- {_flops(found.flops)} per step and rank, counted from the shapes of operators ({found.scope}), mostly in "
        f"{found.precision or 'an unknown precision'}: {_flops(found.flops / found.step_ns * 1e9)}/s over a mean "
        f"{over} ({duration(found.step_ns)})."
    ]
    if found.unsure:
        lines.append(
            f"- Up to {_flops(found.unsure)} more or less than that, since the lengths of packed sequences are known "
            "by their number, their sum and the longest only."
        )
    if found.recomputed:
        lines.append(f"- Of it {_flops(found.recomputed)} is work of the forward pass done again (checkpointing).")
    if found.mfu is not None and found.hfu is not None:
        devices = f"{found.devices} devices of " if found.devices > 1 else ""
        again = f", HFU (with recomputation) {percent(found.hfu)}" if found.recomputed else ""
        lines.append(
            f"- **MFU {percent(found.mfu)}**{again} of {devices}{_flops(found.peak.flops)}/s, the peak in "
            f"{found.precision} ({escaped(found.peak.source)})."
        )
    elif found.implausible:
        lines.append(f"- No MFU: {found.implausible}.")
    else:
        lines.append(
            f"- No MFU: the peak of this device in {found.precision or 'this precision'} is unknown; "
            "`leadline doctor --peak` measures it."
        )
    if found.estimate is not None:
        estimate = found.estimate
        lines.append(
            f"- Second estimate: {_flops(estimate.flops)} by 6 N per token and attention ({number(estimate.tokens)} "
            f"tokens a step), {_flops(estimate.flops - estimate.attention / 2)} where a causal mask saves half of "
            f"attention; counted is {change((found.flops - found.recomputed) / estimate.flops - 1)} of the first."
        )
    if found.uncounted:
        lines.append(f"- Not counted, because their sizes are not recorded: {', '.join(map(code, found.uncounted))}.")
    rows = [
        [rate.name, rate.precision, _flops(rate.flops), duration(rate.time_ns), f"{_flops(rate.achieved)}/s",
         share(rate.achieved, rate.peak) if rate.peak else "unknown"]
        for rate in found.classes
    ]  # fmt: skip
    heads = ["class", "precision", "operations", "time", "achieved", "of peak"]
    return "### Efficiency\n\n" + "\n".join(lines) + "\n\n" + table(heads, rows)


def _flops(value: float) -> str:
    """5.86 GFLOP: three digits."""
    for unit in ("", "k", "M", "G", "T", "P"):
        if abs(value) < 999.5 or unit == "P":
            break
        value /= 1000
    return f"{value:.3g} {unit}FLOP" if abs(value) < 999.5 else f"{value:.0f} {unit}FLOP"
