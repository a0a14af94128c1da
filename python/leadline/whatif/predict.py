"""From a graph and scenarios to predictions: step time, gain, ranges of both, and what they rest on.

`predicted_ns` is the simulated step time of the edited graph. The ranges are meant for nine cases of ten (coverage.py
says what was measured): they move every uncertain fact of the scenarios alone (ranges.py) and what the graph itself may
have wrong (structure.py): residuals, guessed waits, other ranks, and how well the traced steps tell the mean of all.
`speedup` compares with the replayed step, so an edit that changes nothing gives exactly 1. Beside a device both sides
of it are without what recording cost the CPU (recorder.py); the replay is as recorded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from leadline.units import change, duration, percent
from leadline.whatif.coverage import coverage
from leadline.whatif.draws import Draw
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import GraphError
from leadline.whatif.ledger import Row, ledger
from leadline.whatif.ranges import Doubts, by_steps, ranges, responses, step_error
from leadline.whatif.recorder import recording, unrecorded
from leadline.whatif.scenarios import SCENARIOS, find
from leadline.whatif.scenarios.base import Applied, Scenario, ScenarioError, Values, makers_words
from leadline.whatif.simulator import Result, simulate
from leadline.whatif.steady import Steady
from leadline.whatif.structure import Structure

WORTH_DOING = 1.01
"""A gain below one percent is within the noise of most training steps and is not advised."""
_UNDERSTOOD = 0.03
"""A replay by causes that misses less of the step is right; what it misses else is said."""
MOST_FACTS = 8
"""Uncertain facts that are moved one by one; of combined scenarios with more, all others together."""


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
    """Nine times of ten the time lies between these."""
    fastest_ns: float
    slowest_ns: float
    """Simulated times with every uncertain fact of the scenario at its best and at its worst."""
    speedup: float
    """Replayed over predicted step time, in samples per second where the step handles more samples."""
    low_gain: float
    high_gain: float
    """Nine times of ten the speed-up lies between these; what is doubtful about the length of the steps hits both sides
    of it alike, so they are closer than the times are."""
    verdict: str
    """`likely` to gain at least one percent, `possible`, `cannot tell`, `slower`, or `nothing` to gain."""
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
    causal_error: float = 0.0
    """Signed: replayed with every residual at the median of its class / measured - 1. The error of the graph as a model
    of causes; `replay_error` only checks the program."""
    ledger: tuple[Row, ...] = ()
    """Where the time of a step goes along its critical path; filled by `replay`."""
    coverage: str = ""
    """How often ranges of these scenarios held where both sides were measured."""
    recording: str = ""
    """What of the recorder's cost is left out of the gains."""


def predict(graph: Graph, names: Sequence[str], settings: Mapping[str, str] | None = None) -> Report:
    """Predicts the named scenarios, combined in the given order, as one prediction.

    Raises ScenarioError for an unknown scenario or parameter and for one that does not apply to this graph.
    """
    chosen = [find(name) for name in names]
    _check_settings(chosen, settings or {})
    base = _Base(graph)
    return base.report([base.combined(chosen, settings or {})], {})


def rank(graph: Graph, settings: Mapping[str, str] | None = None) -> Report:
    """Predicts every scenario that applies without further parameters: what is likely to gain first, then what may,
    and within these the largest gain.

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
    found.sort(key=_usefulness)
    return base.report(found, left_out)


def replay(graph: Graph) -> Report:
    """Only the measured and the replayed step time, exactly and by causes, and the ledger of the step."""
    base = _Base(graph)
    return base.report([], {}, rows=ledger(graph, base.result))


def gain(graph: Graph, edited: Graph) -> tuple[float, float, float]:
    """What an edit of one's own gains: replayed over edited step time, and the ends of its range, which holds what the
    traced steps and the graph's causes leave open."""
    base, result = _Base(graph, as_recorded=True), simulate(edited)
    step_ns = base.steady.step_ns(edited, result)
    value = base.replayed_ns / step_ns if step_ns else float("inf")
    found = base.structure.doubts(edited, result, step_ns, lambda other: None)
    by_step = by_steps(base.result.per_step_ns, result.per_step_ns)
    within = ranges(value, 1.0, base.steps_ns or [base.measured_ns], by_step, found.doubts, WORTH_DOING)
    return value, within.low_gain, within.high_gain


class _Base:
    """A graph with its replay, shared by all predictions on it."""

    def __init__(self, graph: Graph, *, as_recorded: bool = False) -> None:
        """as_recorded: with what recording cost the CPU, for edits that were made of the graph as it is."""
        self.graph = graph
        self.result = simulate(graph)
        self.steady = Steady.of(graph, self.result)
        bare = None if as_recorded else unrecorded(graph, self.steady)
        self.asked = graph if bare is None else bare.expected
        self.asked_result = self.result if bare is None else simulate(bare.expected)
        self.asked_ns = self.steady.step_ns(self.asked, self.asked_result)
        self.bare = bare
        steps = max(len(self.result.steps), 1)
        self.replayed_ns = self.result.makespan_ns / steps
        self.measured_ns = (graph.info.measured_ns or self.result.makespan_ns) / steps
        self.replay_error = self.replayed_ns / self.measured_ns - 1 if self.measured_ns else 0.0
        self.structure = Structure(
            self.asked, self.asked_result, self.measured_ns, self.steady, None if bare is None else graph
        )
        self.steps_ns = [float(value) for value in graph.info.step_ns]

    def combined(self, scenarios: Sequence[Scenario], settings: Mapping[str, str]) -> Prediction:
        values = [scenario.read(settings) for scenario in scenarios]
        for scenario, value in zip(scenarios, values, strict=True):
            if self.graph.info.of_operations and not scenario.of_operations:
                raise NotApplicable(
                    scenario.name, "the file holds whole operations of workers, not the kernels in them"
                )
            # later scenarios are asked on the graph that the ones before leave behind
            if scenario is scenarios[0] and (reason := scenario.applicable(self.asked, value)) is not None:
                raise NotApplicable(scenario.name, reason)
        expected = Draw()
        outcome = self._run(self.asked, scenarios, values, expected, ask=True)
        ends = [self._run(self.asked, scenarios, values, Draw(place)) for place in (0.0, 1.0)]
        facts = self._facts(scenarios, values, outcome, ends, expected.asked)
        return self._prediction(scenarios, values, outcome, ends, facts)

    def _facts(
        self,
        scenarios: Sequence[Scenario],
        values: Sequence[Values],
        outcome: _Outcome,
        ends: Sequence[_Outcome],
        asked: Mapping[str, None],
    ) -> dict[str, tuple[float, float]]:
        """How the gain answers to each uncertain fact."""
        names = list(asked)
        together = responses(outcome.step_ns, {"all": (ends[0].step_ns, ends[1].step_ns)})
        if len(names) < 2 or not any(abs(change) > 1e-4 for change in together.get("all", ())):
            return {names[0] if len(names) == 1 else "all facts": together.get("all", (0.0, 0.0))}
        alone = {}
        for name in names[:MOST_FACTS]:
            times = [self._run(self.asked, scenarios, values, Draw(0.5, {name: place})).step_ns for place in (0.0, 1.0)]
            alone[name] = (times[0], times[1])
        if len(names) > MOST_FACTS:
            rest = names[MOST_FACTS:]
            times = [
                self._run(self.asked, scenarios, values, Draw(0.5, dict.fromkeys(rest, place))).step_ns
                for place in (0.0, 1.0)
            ]
            alone["other facts"] = (times[0], times[1])
        return responses(outcome.step_ns, alone)

    def _prediction(
        self,
        scenarios: Sequence[Scenario],
        values: Sequence[Values],
        outcome: _Outcome,
        ends: Sequence[_Outcome],
        facts: dict[str, tuple[float, float]],
    ) -> Prediction:
        parts, samples = outcome.parts, outcome.samples

        def again(graph: Graph) -> float | None:
            try:
                return self._run(graph, scenarios, values, Draw()).step_ns
            except (ScenarioError, GraphError):
                return None

        found = self.structure.doubts(outcome.parts[-1].graph, outcome.result, outcome.step_ns, again)
        doubts = Doubts({**facts, **found.doubts.facts}, found.doubts.either_way)
        missed = abs(self.structure.causal_error)
        if samples > 1 and missed > _UNDERSTOOD:
            doubts.facts["what has no known cause may grow with the samples"] = (
                0.0, -math.log(1 + min(missed, 1.0) * (samples - 1))
            )  # fmt: skip
        if self.bare is not None:
            doubts.facts.update(recording(self.bare, self.graph, self.steady, self.asked_ns, outcome.step_ns, again))
        scale = self.replayed_ns / self.asked_ns if self.asked_ns else 1.0  # the gain refers to both unrecorded
        predicted = outcome.step_ns * found.shift * scale
        gain = self.replayed_ns / predicted * samples if predicted else float("inf")
        by_step = by_steps(self.asked_result.per_step_ns, outcome.result.per_step_ns)
        # questions with a factor below 1 ask for a loss
        least = 1.0 if all(scenario.never_slower for scenario in scenarios) and gain >= 1 else 0.0
        # more samples alone give at most as many times the samples
        most = samples if len(scenarios) == 1 and samples > 1 else float("inf")
        within = ranges(gain, samples, self.steps_ns or [self.measured_ns], by_step, doubts, WORTH_DOING, least, most)
        times = [outcome.step_ns * scale, predicted, *(end.step_ns * scale for end in ends)]
        applied: dict[str, int] = {}
        for part in parts:
            for what, number in part.applied_to.items():
                applied[what] = applied.get(what, 0) + number
        return Prediction(
            name="+".join(scenario.name for scenario in scenarios),
            title=" + ".join(scenario.title(value) for scenario, value in zip(scenarios, values, strict=True)),
            advice=", and ".join(scenario.advice_on(self.graph) for scenario in scenarios),
            predicted_ns=predicted,
            fastest_ns=min(times),
            slowest_ns=max(times),
            low_ns=min(within.low_ns, predicted),
            high_ns=max(within.high_ns, predicted),
            speedup=gain,
            low_gain=within.low_gain,
            high_gain=within.high_gain,
            verdict=_verdict(gain, within.low_gain, within.high_gain, within.chance),
            assumptions=tuple(
                makers_words(self.graph, text)
                for text in dict.fromkeys(
                    (
                        *(text for part in parts for text in part.assumptions),
                        *found.sentences,
                        *(self.bare.sentences if self.bare is not None else ()),
                    )
                )
            ),
            applied_to=applied,
            warnings=tuple(
                makers_words(self.graph, text)
                for text in dict.fromkeys(text for part in parts for text in part.warnings)
            ),
            hypothetical=all(scenario.hypothetical for scenario in scenarios),
            samples=samples,
            graph=parts[-1].graph,
            result=outcome.result,
        )

    def _run(
        self, graph: Graph, scenarios: Sequence[Scenario], values: Sequence[Values], draw: Draw, *, ask: bool = False
    ) -> _Outcome:
        """The scenarios one after another on a copy of the graph. `ask`: whether each has something to work on, which
        does not depend on the draw."""
        parts: list[Applied] = []
        graph = graph.copy()
        for number, (scenario, value) in enumerate(zip(scenarios, values, strict=True)):
            if ask and number and (reason := scenario.applicable(graph, value)) is not None:
                raise NotApplicable(scenario.name, reason)
            parts.append(scenario.apply(graph, value, draw))
            graph = parts[-1].graph
        schedule = next((part.schedule for part in reversed(parts) if part.schedule is not None), None)
        try:
            result = simulate(graph, schedule)
        except GraphError as error:
            raise ScenarioError(f"{scenarios[-1].name} cannot be simulated: {error}.") from error
        warm_up = max((part.warm_up_steps for part in parts), default=0)
        return _Outcome(self.steady.step_ns(graph, result, warm_up), result, tuple(parts))

    def report(self, found: Sequence[Prediction], left_out: Mapping[str, str], rows: tuple[Row, ...] = ()) -> Report:
        warnings = list(self.graph.info.warnings)
        if abs(self.replay_error) > 0.03:
            warnings.append(
                f"the replay differs from the measured step by {change(self.replay_error)}; gains refer to the replay"
            )
        error = self.structure.causal_error
        if abs(error) > _UNDERSTOOD:
            warnings.append(
                f"model error (without recorded gaps) {change(error)}: "
                "--replay shows where; every range is wider by that"
            )
        spread = step_error(self.steps_ns)
        if len(self.steps_ns) > 1 and spread > 0.1:
            shortest, longest = (duration(pick(self.graph.info.step_ns)) for pick in (min, max))
            warnings.append(
                f"the steps differ much ({shortest} to {longest}), so their mean is known within "
                f"{percent(2 * spread)} only "
                "and every range is wider by that; choose steady steps with --steps"
            )
        elif len(self.steps_ns) == 1:
            warnings.append(
                "the window holds one step, which does not show how steps differ: every range is wider by that"
            )
        for prediction in found:
            warnings += [f"{prediction.name}: {text}" for text in prediction.warnings]
        return Report(
            coverage=coverage([one.name for one in found], has_device=bool(self.graph.info.devices)),
            measured_ns=self.measured_ns,
            replayed_ns=self.replayed_ns,
            replay_error=self.replay_error,
            steps=self.result.steps,
            window=self.graph.info.window_ns,
            scenarios=tuple(found),
            warnings=tuple(dict.fromkeys(warnings)),
            not_applicable=dict(left_out),
            replay=self.result,
            causal_error=error,
            ledger=rows,
            recording=" ".join(self.bare.sentences) if self.bare is not None and found else "",
        )


@dataclass(frozen=True)
class _Outcome:
    """One edit of a graph, simulated."""

    step_ns: float
    result: Result
    parts: tuple[Applied, ...]

    @property
    def samples(self) -> float:
        product = 1.0
        for part in self.parts:
            product *= part.samples
        return product


def _verdict(gain: float, low: float, high: float, chance: float) -> str:
    """What the range lets one say."""
    if high < WORTH_DOING and low > 1 / WORTH_DOING:
        return "nothing"
    if high < 1:
        return "slower"
    if low >= WORTH_DOING or (low > 1 and chance >= 0.95):
        return "likely"
    if low < 1 / 1.1 and high > 1.1 and chance <= 0.7:
        return "cannot tell"
    return "possible" if chance >= 0.5 and gain >= WORTH_DOING else "cannot tell" if high >= WORTH_DOING else "slower"


def _usefulness(one: Prediction) -> tuple[bool, bool, int, bool, float, str]:
    """Steps of more samples stand behind all that makes the same step shorter: their times are not comparable."""
    return one.hypothetical, one.samples != 1, _WEIGHT[one.verdict], one.low_gain <= 1, -one.speedup, one.name


_WEIGHT = {"likely": 0, "possible": 1, "cannot tell": 2, "nothing": 3, "slower": 4}


def _check_settings(scenarios: Sequence[Scenario], settings: Mapping[str, str]) -> None:
    known = {parameter.name for scenario in scenarios for parameter in scenario.parameters}
    unknown = sorted(set(settings) - known)
    if unknown:
        names = ", ".join(sorted(known)) or "none"
        raise ScenarioError(
            f"{', '.join(unknown)} is no parameter of {' + '.join(s.name for s in scenarios)}; it takes: {names}."
        )
