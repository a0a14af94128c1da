"""What all formats of findings say in the same words: the gain, a line, what could not be asked."""

from __future__ import annotations

from leadline.analysis.findings import NO_SHAPES, Finding, Findings, Line, State
from leadline.report.source import visible
from leadline.units import counted, duration, share


def gain_text(found: Finding) -> str:
    """`about 1.2 ms of 4.0 ms a step, 30 % (0.9 ms to 1.5 ms); ...`; in place of a wide range what measures it."""
    gain = found.gain
    if gain.high_ns <= 0:
        return f"no time: {gain.basis}"
    per = "a step" if gain.per == "step" else "a run"
    whole = f" of {duration(gain.of_ns)}" if gain.of_ns else ""
    part = f", {share(gain.expected_ns, gain.of_ns)}" if gain.of_ns and gain.expected_ns else ""
    low = duration(gain.low_ns) if gain.low_ns else "0"
    if not gain.expected_ns:
        return f"at most {duration(gain.high_ns)}{whole} {per}; {gain.basis}"
    about = f"about {duration(gain.expected_ns)}{whole} {per}{part}"
    if gain.is_wide and found.measured_by:
        return f"{about}, but a profile cannot estimate it well; to measure it: {found.measured_by}; {gain.basis}"
    return f"{about} ({low} to {duration(gain.high_ns)}); {gain.basis}"


def line_text(line: Line) -> str:
    """`train.py:41 main, in the loop at line 38`."""
    where = f"{line.short}:{line.line}" if line.line else line.short
    return visible(f"{where} {line.function}".rstrip() + (f", {line.context}" if line.context else ""))


def headline(found: Findings) -> str:
    """`2 warnings, 1 note; 30 steps of 4.1 ms`, `no problem found; 30 steps of 4.1 ms`, `could not look: ...`."""
    warnings = sum(one.severity.value == "warning" for one in found)
    notes = len(found) - warnings
    parts = [
        f"{number} {word}{'s' if number != 1 else ''}" for number, word in ((warnings, "warning"), (notes, "note"))
    ]
    steps = f"; {counted(found.steps, 'step')} of {duration(found.step_ns)}" if found.steps and found.step_ns else ""
    if found.state is State.PROBLEM:
        return ", ".join(parts) + steps
    return ", ".join([found.state_text, *(parts[1:] if notes else [])]) + steps


def label(finding: Finding) -> str:
    return "warning" if finding.severity.value == "warning" else "note"


def silent_texts(found: Findings, *, everything: bool = False) -> list[str]:
    """`29 rules did not apply; --all lists them`, and rules that raised. `everything`: each with its
    reason."""
    said = [f"{one.rule}: not applicable: {one.reason}" for one in found.not_applicable]
    number = len(said)
    if not everything and number > 1:
        said = [f"{number} rules did not apply; --all lists them with their reasons"]
        if unseen := sorted(one.rule for one in found.not_applicable if one.reason == NO_SHAPES):
            said.append(
                f"{', '.join(unseen)} and computations that are repeated with equal inputs: not checked, since shapes "
                "were not recorded; `leadline why` records them"
            )
    return [visible(text) for text in [*said, *(f"{one.rule}: failed: {one.error}" for one in found.failed)]]
