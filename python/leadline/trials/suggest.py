"""Which remedies a profile suggests, and what is predicted of each: by a what-if scenario where the profile has a trace
window, else by the finding that names the remedy.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Sequence
from pathlib import Path

from leadline.analysis import measurable
from leadline.analysis.analyze import analyze
from leadline.analysis.findings import WIDE, Finding
from leadline.analysis.threads import of_operators
from leadline.profiles import Profile, open_profile
from leadline.remedies.base import Remedy
from leadline.remedies.registry import find, parse, shipped
from leadline.trials.model import Predicted
from leadline.whatif import Graph, GraphError, ScenarioError, predict
from leadline.whatif.load import load

MOST = 4
_WORTH = 0.01
_USUAL = {"torch": ("compile", "autocast", "fused_optimizer"), "jax": ("donation",)}
"""By package: tried where the profile suggests fewer; what helps most programs."""

_INSTEAD = {"foreach_optimizer": "fused_optimizer", "tf32": "float32_matmul_precision"}
"""Two ways to the same: the second is tried."""


class Suggestions:
    """Of one profile; `packages`: that the program has imported. What cannot be predicted is not."""

    def __init__(self, profile: Path | None, packages: Collection[str] = ("torch",)) -> None:
        self._packages = packages
        self._profile: Profile | None = None
        self._graph: Graph | None = None
        self._findings: tuple[Finding, ...] = ()
        self._threads = 0
        if profile is not None:
            with contextlib.suppress(Exception):
                self._profile = open_profile(str(profile))
                self._threads, _ = of_operators(self._profile)
                self._findings = analyze(self._profile).findings
            with contextlib.suppress(Exception):
                self._graph = load(str(profile))

    def predicted(self, remedy: Remedy) -> Predicted | None:
        """Change of the step's time (of a sample's); None where its range is so wide that it predicts nothing."""
        found = self._expected(remedy)
        return found if found is not None and (found.high - found.low) / 2 <= WIDE else None

    def _expected(self, remedy: Remedy) -> Predicted | None:
        return self._by_scenario(remedy) or self._by_finding(remedy)

    def remedies(self) -> list[tuple[Remedy, str]]:
        """At most `MOST`: those that the profile suggests, the largest predicted gain first, then the usual ones."""
        found: dict[str, tuple[float, Remedy]] = {}
        for kind in shipped():
            for value in self._values(kind):
                with contextlib.suppress(ValueError):
                    remedy = kind(value)
                    if remedy.computes_else or not self._is_suggested(remedy):
                        continue
                    expected = self._expected(remedy)
                    found[remedy.title] = (expected.median if expected else 0.0, remedy)
        for name, better in _INSTEAD.items():
            if better in found:
                found.pop(name, None)
        chosen = [remedy for _, remedy in sorted(found.values(), key=lambda one: one[0])][:MOST]
        for name in (name for package, names in _USUAL.items() if package in self._packages for name in names):
            if len(chosen) < MOST and name not in {one.name for one in chosen}:
                chosen.append(find(name, ""))
        return [(remedy, "") for remedy in chosen]

    def _values(self, kind: type[Remedy]) -> list[str]:
        """What a finding names, else the usual one."""
        named = [value for name, _, value in (one.fix.partition("=") for one in self._findings) if name == kind.name]
        return list(dict.fromkeys(named)) or [measurable.usual_value(kind.name, len(os.sched_getaffinity(0)))]

    def _is_suggested(self, remedy: Remedy) -> bool:
        if remedy.name == "num_threads" and self._threads == int(remedy.chosen):
            return False  # as many are used
        if any(_is_of(remedy, one) and one.rule != "not_explained" for one in self._findings):
            return True
        predicted = self._by_scenario(remedy)
        return predicted is not None and predicted.median < -_WORTH

    def _by_scenario(self, remedy: Remedy) -> Predicted | None:
        if not remedy.scenario or self._graph is None:
            return None
        try:
            report = predict(self._graph, [remedy.scenario], remedy.scenario_settings)
        except (ScenarioError, GraphError):
            return None
        one = report.scenarios[0]
        return Predicted(1 / one.speedup - 1, 1 / one.high_gain - 1, 1 / one.low_gain - 1, one.name)

    def _by_finding(self, remedy: Remedy) -> Predicted | None:
        for one in self._findings:
            gain = one.gain
            if _is_of(remedy, one) and gain.of_ns > 0 and gain.expected_ns > 0 and gain.per == "step":
                low, middle, high = (-ns / gain.of_ns for ns in (gain.high_ns, gain.expected_ns, gain.low_ns))
                return Predicted(middle, low, high, one.rule)
        return None


def rules_of(remedy: Remedy) -> tuple[str, ...]:
    """Rules whose findings it is a fix for: those that it names itself, and those that Leadline knows."""
    return tuple(dict.fromkeys((*remedy.rules, *measurable.rules_of(remedy.name))))


def _is_of(remedy: Remedy, one: Finding) -> bool:
    """Whether it is the fix of a finding: the best that there is, or one of the user's own."""
    return remedy.title == one.fix or one.rule in remedy.rules


def asked(texts: Sequence[str]) -> list[tuple[Remedy, str]]:
    """What `--remedy` names. Raises RemedyError."""
    return [one for text in texts for one in parse(text)]
