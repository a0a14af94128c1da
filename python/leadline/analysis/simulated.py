"""Gains from the what-if simulator: where a profile holds a trace window, a scenario says more than a bound can."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leadline._dataclass import replace
from leadline.analysis.findings import Finding, Gain
from leadline.profiles import Profile
from leadline.profiles.tables import Tables

_MOST_EVENTS = 100_000


class Simulated:
    """The trace window of one profile, loaded when the first finding asks; each scenario is simulated once."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._graph: object | None = None
        self._failed = not len(profile.events["start_ns"])
        self._gains: dict[str, Gain | None] = {}
        self.notes: list[str] = []

    def better(self, findings: Sequence[Finding]) -> list[Finding]:
        """The findings with the simulator's gains where it has them. A scenario that does not apply to the window means
        that there is nothing to gain; several findings of one scenario share what it gains as their bounds are."""
        if self._failed:
            return list(findings)
        bounds: dict[str, int] = {}
        for one in findings:
            bounds[one.scenario] = bounds.get(one.scenario, 0) + one.gain.high_ns
        return [self._better(one, bounds[one.scenario]) for one in findings]

    def _better(self, finding: Finding, bounds: int) -> Finding:
        if not finding.scenario or self._failed:
            return finding
        if finding.scenario not in self._gains:
            self._gains[finding.scenario] = self._simulate(finding.scenario)
        gain = self._gains[finding.scenario]
        if gain is None:
            return finding
        part = finding.gain.high_ns / bounds if bounds else 1.0
        scale = part * (finding.gain.of_ns / gain.of_ns if finding.gain.of_ns and gain.of_ns else 1.0)
        low, expected, high = (int(ns * scale) for ns in (gain.low_ns, gain.expected_ns, gain.high_ns))
        basis = gain.basis if part >= 1 else f"{gain.basis}, this line's part of it"
        return replace(finding, gain=replace(
            gain, low_ns=low, expected_ns=expected, high_ns=high, basis=basis, of_ns=finding.gain.of_ns or gain.of_ns
        ))  # fmt: skip

    def _some_steps(self) -> Profile:
        """The profile with as many whole steps from the middle of its window as are simulated in seconds: a gain per
        step needs no more."""
        events = self._profile.events
        step = np.asarray(events["step"])
        numbers, counts = np.unique(step[step >= 0], return_counts=True)
        if len(step) <= _MOST_EVENTS or len(numbers) < 2:
            return self._profile
        number = max(2, int(_MOST_EVENTS // max(counts.max(), 1)))
        first = max(0, (len(numbers) - number) // 2)
        kept = np.isin(step, numbers[first : first + number])
        self.notes.append(f"Gains are simulated on {number} of the {len(numbers):,} steps of the trace window.")
        columns = dict(self._profile.tables.columns)
        columns["events"] = {name: column[kept] for name, column in events.items()}
        return Profile(Tables(columns), dict(self._profile.meta))

    def _simulate(self, scenario: str) -> Gain | None:
        from leadline.trace.tables import TraceError
        from leadline.whatif import Graph, GraphError, ScenarioError, graph_of, predict

        try:
            if self._graph is None:
                self._graph = graph_of(self._some_steps())
            assert isinstance(self._graph, Graph)
            report = predict(self._graph, [scenario])
        except ScenarioError as error:
            reason = getattr(error, "reason", str(error))
            return Gain(0, 0, 0, f"simulated ({scenario}): nothing to gain, {reason}", "step", 0)
        except (TraceError, GraphError) as error:
            self._failed = True
            self.notes.append(f"The trace window could not be simulated: {error}.")
            return None
        best = report.scenarios[0]
        gains = (best.low_gain, best.speedup, best.high_gain)
        saved = [report.replayed_ns * (1 - best.samples / gain) for gain in gains]
        low, expected, high = sorted(max(0, int(ns)) for ns in saved)
        steps = f"steps {report.steps[0]} to {report.steps[-1]}" if report.steps else "the window"
        return Gain(low, expected, high, f"simulated on {steps} ({scenario})", "step", int(report.replayed_ns))
