"""From a graph and scenarios to predictions: step time, range, speed-up, and what they rest on.

`predicted_ns` is the simulated step time of the edited graph, `low_ns` and `high_ns` those of its optimistic and
pessimistic edits. They are widened by the replay error (a graph that does not reproduce the measured step cannot be
trusted further than that) and by how well a few steps tell the mean of all (twice its standard error). `speedup`
compares with the replayed step, so an edit that changes nothing gives exactly 1.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from leadline.whatif.gpus import Bound
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import GraphError
from leadline.whatif.scenarios import SCENARIOS, find
from leadline.whatif.scenarios.base import Applied, Scenario, ScenarioError, Values
from leadline.whatif.simulator import Result, simulate
from leadline.whatif.units import show_time


class NotApplicable(ScenarioError):
    """A scenario has nothing to work on in this graph."""

    def __init__(self, scenario: str, reason: str) -> None:
        super().__init__(f"{scenario} does not apply: {reason}.")
        self.reason = reason


@dataclass(frozen=True)
class Prediction:
    """One scenario, or several combined. Times are nanoseconds per step (mean over the steps of the window)."""

    name: str
    title: str
    """The name with what tells variants apart ("faster gpu 2x")."""
    advice: str
    predicted_ns: float
    low_ns: float
    high_ns: float
    fastest_ns: float
    slowest_ns: float
    """Simulated times of the optimistic and the pessimistic edit: the range of the gain on these very steps, to which
    `low_ns` and `high_ns` add what is doubtful about the step time itself."""
    speedup: float
    """Replayed over predicted step time, in samples per second where the step handles more samples."""
    assumptions: tuple[str, ...]
    applied_to: Mapping[str, int]
    warnings: tuple[str, ...] = ()
    hypothetical: bool = False
    samples: float = 1.0
    graph: Graph | None = field(default=None, repr=False, compare=False)
    result: Result | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Report:
    """Everything `leadline whatif` says. Times are nanoseconds per step."""

    measured_ns: float
    replayed_ns: float
    replay_error: float
    """Signed: replayed / measured - 1."""
    steps: tuple[int, ...]
    window: tuple[int, int]
    scenarios: tuple[Prediction, ...]
    warnings: tuple[str, ...]
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    """Why a scenario of the ranking was left out."""
    replay: Result | None = field(default=None, repr=False, compare=False)


def predict(graph: Graph, names: Sequence[str], settings: Mapping[str, str] | None = None) -> Report:
    """Predicts the named scenarios, combined in the given order, as one prediction.

    Raises ScenarioError for an unknown scenario or parameter and for one that does not apply to this graph.
    """
    chosen = [find(name) for name in names]
    _check_settings(chosen, settings or {})
    base = _Base(graph)
    return base.report([base.combined(chosen, settings or {})], {})


def rank(graph: Graph, settings: Mapping[str, str] | None = None) -> Report:
    """Predicts every scenario that applies without further parameters, the largest gain first.

    Questions about hardware (`faster`, `kernel_speedup`) are asked for each device that the trace shows and come
    after the advice.
    """
    base = _Base(graph)
    found: list[Prediction] = []
    left_out: dict[str, str] = {}
    for scenario in SCENARIOS:
        for extra in scenario.variants():
            try:
                found.append(base.combined([scenario], {**extra, **(settings or {})}))
            except ScenarioError as error:
                left_out[" ".join([scenario.name, *extra.values()])] = getattr(error, "reason", str(error))
    found.sort(key=lambda item: (item.hypothetical, -item.speedup, item.name))
    return base.report(found, left_out)


def replay(graph: Graph) -> Report:
    """Only the measured and the replayed step time."""
    return _Base(graph).report([], {})


def sampling_error(step_ns: Sequence[int]) -> float:
    """Twice the standard error of the mean step, relative to it; 0 for fewer than three steps, which tell nothing."""
    if len(step_ns) < 3 or not sum(step_ns):
        return 0.0
    mean = sum(step_ns) / len(step_ns)
    return 2 * statistics.stdev(step_ns) / math.sqrt(len(step_ns)) / mean


class _Base:
    """A graph with its replay, shared by all predictions on it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.result = simulate(graph)
        steps = max(len(self.result.steps), 1)
        self.replayed_ns = self.result.makespan_ns / steps
        self.measured_ns = (graph.info.measured_ns or self.result.makespan_ns) / steps
        self.replay_error = self.replayed_ns / self.measured_ns - 1 if self.measured_ns else 0.0
        self.sampling_error = sampling_error(graph.info.step_ns)

    def combined(self, scenarios: Sequence[Scenario], settings: Mapping[str, str]) -> Prediction:
        values = [scenario.read(settings) for scenario in scenarios]
        ends: dict[Bound, tuple[float, Applied, Result, list[Applied]]] = {}
        for bound in Bound:
            parts: list[Applied] = []
            graph = self.graph.copy()
            for scenario, value in zip(scenarios, values, strict=True):
                # the three edits of one scenario differ in amounts, not in whether there is something to edit
                reason = scenario.applicable(graph, value) if bound is Bound.LOW else None
                if reason is not None:
                    raise NotApplicable(scenario.name, reason)
                parts.append(scenario.apply(graph, value, bound))
                graph = parts[-1].graph
            schedule = next((part.schedule for part in reversed(parts) if part.schedule is not None), None)
            try:
                result = simulate(graph, schedule)
            except GraphError as error:
                raise ScenarioError(f"{scenarios[-1].name} cannot be simulated: {error}.") from error
            counted = result.per_step_ns[max((part.warm_up_steps for part in parts), default=0) :]
            ends[bound] = (float(counted.mean()) if counted.size else 0.0, parts[-1], result, parts)
        return self._prediction(scenarios, values, ends)

    def _prediction(
        self,
        scenarios: Sequence[Scenario],
        values: Sequence[Values],
        ends: Mapping[Bound, tuple[float, Applied, Result, list[Applied]]],
    ) -> Prediction:
        predicted, last, result, parts = ends[Bound.EXPECTED]
        times = [end[0] for end in ends.values()]
        doubt = abs(self.replay_error) + self.sampling_error
        samples = 1.0
        for part in parts:
            samples *= part.samples
        applied: dict[str, int] = {}
        for part in parts:
            for what, number in part.applied_to.items():
                applied[what] = applied.get(what, 0) + number
        return Prediction(
            name="+".join(scenario.name for scenario in scenarios),
            title=" + ".join(scenario.title(value) for scenario, value in zip(scenarios, values, strict=True)),
            advice=", and ".join(scenario.advice for scenario in scenarios),
            predicted_ns=predicted,
            fastest_ns=min(times),
            slowest_ns=max(times),
            low_ns=min(times) * (1 - min(doubt, 1.0)),
            high_ns=max(times) * (1 + doubt),
            speedup=self.replayed_ns / predicted * samples if predicted else float("inf"),
            assumptions=tuple(dict.fromkeys(text for part in parts for text in part.assumptions)),
            applied_to=applied,
            warnings=tuple(dict.fromkeys(text for part in parts for text in part.warnings)),
            hypothetical=all(scenario.hypothetical for scenario in scenarios),
            samples=samples,
            graph=last.graph,
            result=result,
        )

    def report(self, found: Sequence[Prediction], left_out: Mapping[str, str]) -> Report:
        warnings = list(self.graph.info.warnings)
        if abs(self.replay_error) > 0.03:
            warnings.append(
                f"the replay differs from the measured step by {self.replay_error:+.1%}; every range is widened by that"
            )
        if self.sampling_error > 0.1:
            shortest, longest = (show_time(pick(self.graph.info.step_ns)) for pick in (min, max))
            warnings.append(
                f"the steps differ much ({shortest} to {longest}), so their mean is known within "
                f"{self.sampling_error:.0%} only and every range is widened by that; choose steady steps with --steps"
            )
        for prediction in found:
            warnings += [f"{prediction.name}: {text}" for text in prediction.warnings]
        return Report(
            measured_ns=self.measured_ns,
            replayed_ns=self.replayed_ns,
            replay_error=self.replay_error,
            steps=self.result.steps,
            window=self.graph.info.window_ns,
            scenarios=tuple(found),
            warnings=tuple(dict.fromkeys(warnings)),
            not_applicable=dict(left_out),
            replay=self.result,
        )


def _check_settings(scenarios: Sequence[Scenario], settings: Mapping[str, str]) -> None:
    known = {parameter.name for scenario in scenarios for parameter in scenario.parameters}
    unknown = sorted(set(settings) - known)
    if unknown:
        names = ", ".join(sorted(known)) or "none"
        raise ScenarioError(
            f"{', '.join(unknown)} is no parameter of {' + '.join(s.name for s in scenarios)}; it takes: {names}."
        )
