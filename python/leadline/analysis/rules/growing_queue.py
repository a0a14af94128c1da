"""`growing_queue`: requests come faster than the engine ends them, so each waits longer than the one before."""

from __future__ import annotations

from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.serving import engine_of
from leadline.units import duration, number, percent

_FEWEST_POINTS = 6


class GrowingQueue(Rule):
    name = "growing_queue"
    asks = "Does the queue of requests only grow?"
    options = (
        Option("times", 2, "1", "the queue in the last third of the run over that in the first"),
        Option("waiting", 8, "1", "requests in the queue at the end; a few are what batches are made of"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        engine = engine_of(case)
        if len(engine.points) < _FEWEST_POINTS:
            raise CannotTell(f"the engine ran for fewer than {_FEWEST_POINTS} points of its series")
        third = len(engine.points) // 3
        waiting = [point[1] for point in engine.points]
        first, middle, last = (
            sum(part) / len(part) for part in (waiting[:third], waiting[third:-third], waiting[-third:])
        )
        if last < values["waiting"] or last < values["times"] * first or not first <= middle <= last:
            return []
        share = engine.share_of("queue", "e2e")
        evidence = [
            f"{number(round(first))} requests wait in the first third of the run, {number(round(last))} in the last",
            f"{number(engine.open)} requests had not ended",
        ]
        if (queue := engine.of("queue")).count:
            evidence.append(
                f"a request waits {duration(queue.quantile(0.5))} (p50), {duration(queue.quantile(0.99))} (p99), "
                f"{percent(share)} of its time"
            )
        return [
            Finding(
                self.name,
                Severity.WARNING,
                f"The queue grows to {number(max(waiting))} requests: they arrive faster than the engine completes "
                f"them",
                case.no_gain("the engine is at its limit; its steps show what limits it"),
                (),
                (),
                tuple(evidence),
                "Add engines, refuse requests early, or make steps cheaper; larger batches help where the cache is not "
                "full (vLLM: max_num_seqs, max_num_batched_tokens).",
                self.learn_more,
                share,
            )
        ]
