"""What findings say together: gains that the device leaves, one finding for one cause, and that gains overlap."""

from __future__ import annotations

from collections.abc import Sequence

from leadline._dataclass import replace
from leadline.analysis.case import CannotTell, Case
from leadline.analysis.findings import Finding, Severity
from leadline.analysis.rules.base import Rule
from leadline.units import duration, percent

_CAUSES = ("data_loading", "synchronisation", "saving_in_loop", "python_overhead", "logging_in_loop")
"""Why a device idles, each with a line of its own; that it idles is what they look like from there."""
_SYMPTOM = "cpu_latency"
_NOTHING = 0.001
"""Of the step: what gains less is no reason to change anything."""


def capped(case: Case, rule: Rule, one: Finding) -> Finding:
    """The finding with what its remedy can save: time that the CPU spends beside a busy device is not lost."""
    if not rule.on_cpu or not case.has_device or one.gain.per != "step":
        return one
    try:
        idle = case.device_idle_ns
    except CannotTell:
        return one
    gain = one.gain
    if gain.high_ns <= idle:
        return one
    low, expected, high = (min(ns, int(idle)) for ns in (gain.low_ns, gain.expected_ns, gain.high_ns))
    basis = f"{gain.basis}; the device idles {duration(idle)} of a step, no more can be saved"
    worth = high >= _NOTHING * max(gain.of_ns, 1)
    return replace(
        one,
        severity=one.severity if worth and high > 0.05 * gain.of_ns else Severity.INFO,
        gain=replace(gain, low_ns=low, expected_ns=expected, high_ns=high, basis=basis),
        weight=min(one.weight, high / max(gain.of_ns, 1)),
    )


def one_of_each_cause(findings: Sequence[Finding]) -> list[Finding]:
    """Without waits that gain nothing, and without the device's idleness where the cause of most of it is named."""
    kept = [one for one in findings if not _is_nothing(one)]
    causes = [one for one in kept if one.rule in _CAUSES and one.gain.high_ns]
    made = list(kept)
    for one in kept:
        explains = [cause for cause in causes if 2 * cause.gain.high_ns >= one.gain.high_ns]
        if one.rule == _SYMPTOM and explains:
            first = max(explains, key=lambda cause: cause.gain.high_ns)
            idle = one.gain.high_ns / max(one.gain.of_ns, 1)
            said = replace(first, evidence=(*first.evidence, f"the device idles {percent(idle)} of the step meanwhile"))
            made = [said if other is first else other for other in made if other is not one]
            causes = [said if other is first else other for other in causes]
    return made


def _is_nothing(one: Finding) -> bool:
    """A wait whose end would change nothing."""
    return one.rule == "synchronisation" and one.gain.of_ns > 0 and one.gain.high_ns < _NOTHING * one.gain.of_ns


def about_gains(findings: Sequence[Finding]) -> list[str]:
    """That gains overlap, where they do."""
    gains = [one.gain for one in findings if one.gain.per == "step" and one.gain.expected_ns]
    if len(gains) < 2 or sum(gain.high_ns for gain in gains) <= max(gain.of_ns for gain in gains):
        return []
    return ["Gains overlap: each refers to the whole step as measured, so they do not add up."]
