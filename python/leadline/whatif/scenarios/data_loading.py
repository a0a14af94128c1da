"""`data_loading`: another number of loader workers, or a loader that is never waited for (workers=inf).

Steady state: W workers that need t for a batch deliver one every t/W, so a step takes max(t/W, its time without
loading). The time of one batch is the loading time of a step with no worker. With workers it is the measured step time
times their number where the step waits for them, and where it does not, what they spend on one if the trace shows it.
On C cores a step also takes at least (t + its own time)/C: workers and training then take turns.
"""

from __future__ import annotations

import math

from leadline.units import duration, percent
from leadline.whatif.draws import Draw, technique
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import Selection
from leadline.whatif.scenarios.base import (
    Applied,
    Parameter,
    Scenario,
    ScenarioError,
    Values,
    count,
    require_positive,
)
from leadline.whatif.scenarios.loader import (
    batch_times_ns,
    fetch_ns,
    loads_of,
    mean_step_ns,
    mean_wait_ns,
    outermost,
    own_cpu_ns,
    queue_pace_ns,
    rest_of_steps_ns,
    set_period,
    uses_workers,
    worker_batch_ns,
    worker_count,
)
from leadline.whatif.units import Unit

_MANY = 256
"""Workers beyond which variance is nothing."""


class DataLoading(Scenario):
    """Sets how long each step waits for its batch."""

    name = "data_loading"
    advice = "use enough loader workers (num_workers) that no step waits for its batch"
    parameters = (
        Parameter("workers", Unit.COUNT, "loader workers, or inf: the batch is always ready", "inf"),
        Parameter("cores", Unit.COUNT, "cores for training and workers together; default: enough for all"),
        Parameter("current_workers", Unit.COUNT, "workers of the traced run, where the trace does not show them"),
    )

    def title(self, values: Values) -> str:
        return f"{self.name} workers={values.number('workers'):g}"

    def applicable(self, graph: Graph, values: Values) -> str | None:
        return None if loads_of(graph) else "the trace has no data loading"

    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        loads = loads_of(graph)
        workers = values.number("workers")
        if math.isinf(workers):
            # taking over a batch that is ready costs something too; the pessimistic end counts it
            fetch = fetch_ns(graph, loads, draw) if draw.cautious("loader_fetch_ns") else 0.0
            set_period(graph, loads, 0.0, min(fetch, mean_wait_ns(graph, loads)))
            return Applied(graph, ("the loader is never waited for",), count(loads=outermost(graph, loads)))
        if workers < 1:
            raise ScenarioError("data_loading: workers must be at least 1, or inf.")
        current, source, warnings = _current(graph, values)
        wait = mean_wait_ns(graph, loads)
        fetch = fetch_ns(graph, loads, draw)
        scaling = 1.0 if workers <= max(current, 1) else technique("loader_scaling", larger_is_faster=True).at(draw)
        by_worker = worker_batch_ns(graph) if current else None
        batch_ns = wait if current == 0 else current * mean_step_ns(graph)
        if by_worker is not None and wait <= fetch:
            batch_ns = by_worker
        evidence = graph.info.evidence
        if evidence is not None and evidence.batch_ns is not None:
            batch_ns, source = evidence.batch_ns, f"{source}; {evidence.words}"
        if current and wait <= fetch and (batch_ns == current * mean_step_ns(graph) or workers >= current):
            return Applied(
                graph,
                (f"{source}, and the step hardly waits for them: more workers change nothing",),
                count(loads=outermost(graph, loads)),
                warnings,
            )
        fetch = min(fetch, wait)
        period, cores = batch_ns / (workers * scaling), values.optional("cores")
        if cores is not None:
            require_positive(self.name, values, ["cores"])
            # a step's time without loading may be spent waiting for a device, which leaves the core to a worker
            share = scaling if workers + 1 > cores else 1.0
            period = max(period, (batch_ns + own_cpu_ns(graph, loads) + fetch) / (cores * share))
        period += _late_ns(graph, loads, batch_ns / scaling, int(workers), fetch)
        set_period(graph, loads, period, fetch)
        assumptions = (
            f"{source}; one batch takes {duration(batch_ns)} to make",
            (
                "one worker makes one batch after the other, "
                if workers == 1
                else f"{workers:g} workers reach {percent(scaling)} of {workers:g} times one worker's rate, "
            )
            + ("on their own cores" if cores is None else f"sharing {cores:g} cores with the training"),
            f"taking over a batch that is ready costs {duration(fetch)}",
        )
        return Applied(graph, assumptions, count(loads=outermost(graph, loads)), warnings)


def _late_ns(graph: Graph, loads: Selection, batch_ns: float, workers: int, fetch: float) -> float:
    """How much longer a step takes than its batches and its own work need in the mean, because both vary and a loader
    makes only a few batches in advance."""
    if workers > _MANY:
        return 0.0
    batches = batch_times_ns(graph, loads, batch_ns)
    rest = rest_of_steps_ns(graph, loads) + fetch
    even = max(float(batches.mean()) / workers, float(rest.mean()))
    return max(queue_pace_ns(batches, rest, workers) - even, 0.0)


def _current(graph: Graph, values: Values) -> tuple[int, str, tuple[str, ...]]:
    """Workers of the traced run, how that is known, and what is doubtful."""
    given = values.optional("current_workers")
    if given is not None:
        return int(given), f"the traced run has {given:g} workers", ()
    if uses_workers(graph):
        known = worker_count(graph)
        if known:
            return known, f"the trace shows {known} worker{'s' * (known > 1)}", ()
        return 1, "the traced run has worker processes, whose number the trace does not show: one is assumed", (
            "the number of loader workers is not in the trace; add --set current_workers=N",
        )  # fmt: skip
    return 0, "the traced run loads in the training process", ()
