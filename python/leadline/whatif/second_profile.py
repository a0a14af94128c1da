"""A second profile of the same program under other conditions settles what one cannot tell.

Two batch sizes tell for every operator and kernel how its time grows with the batch, instead of a factor that is right
on the whole; two numbers of loader workers tell what a batch takes to make, instead of a bound. What differs is found
from the profiles themselves; where nothing of the kind differs, the second profile is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from leadline._dataclass import replace
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import GraphError, Phase, TaskKind
from leadline.whatif.scenarios.loader import loads_of, mean_step_ns, uses_workers, worker_count
from leadline.whatif.selftime import SelfTimes
from leadline.whatif.tables import PYTHON, Evidence

_LEAST_RATIO = 1.2
_MOST_EXPONENT = 2.5


def with_evidence(graph: Graph, other: Graph) -> Graph:
    """The graph with what the other one says about it. Raises GraphError where they do not differ in a way that is
    understood, or are of different programs."""
    shared = set(graph.names) & set(other.names)
    if len(shared) < 0.3 * min(len(graph.names), len(other.names)):
        raise GraphError("the second profile is of another program: few operators and kernels have the same names")
    ratio = _batch_ratio(graph, other)
    exponents: Mapping[str, float] = {}
    words = []
    if max(ratio, 1 / ratio) >= _LEAST_RATIO:
        exponents = _exponents(graph, other, ratio)
        words.append(
            f"the second profile has a batch {ratio:g} times as large: the growth of {len(exponents)} kinds of work is "
            "measured between the two"
        )
    batch_ns = _batch_time(graph, other)
    if batch_ns is not None:
        words.append(f"between the two numbers of loader workers a batch takes {batch_ns / 1e6:.3g} ms to make")
    if not words:
        raise GraphError(
            "the second profile adds no evidence: it has the batch size and the number of loader workers of the first"
        )
    result = graph.copy()
    found = Evidence(ratio, exponents, batch_ns, "; ".join(words))
    result.info = replace(graph.info, facts={**graph.info.facts, "evidence": found})
    return result


def _batch_ratio(graph: Graph, other: Graph) -> float:
    """The factor that most leading axes of operands differ by, of operators that both profiles have in one order."""
    sizes = [_leading_axes(each) for each in (graph, other)]
    votes: dict[float, int] = {}
    for key in sizes[0].keys() & sizes[1].keys():
        one, two = sizes[0][key], sizes[1][key]
        if one > 0 and two > 0 and one != two:
            votes[two / one] = votes.get(two / one, 0) + 1
    if not votes:
        return 1.0
    ratio, count = max(votes.items(), key=lambda item: item[1])
    return ratio if count > 0.3 * sum(votes.values()) else 1.0


def _leading_axes(graph: Graph) -> dict[tuple[str, int, int], int]:
    """First axis of every operand, by operator, its place in the first step and the operand's."""
    found: dict[tuple[str, int, int], int] = {}
    count: dict[str, int] = {}
    first = min(graph.info.steps, default=0)
    order = graph.column("order")
    tasks = graph.select(kind=TaskKind.CPU, phase=Phase.FORWARD, step=first).ids
    for task in tasks[np.argsort(order[tasks], kind="stable")].tolist():
        detail: Mapping[str, Any] = graph.detail(task)
        if "Input Dims" not in detail:
            continue
        name = graph.names[graph.column("name")[task]]
        place = count[name] = count.get(name, 0) + 1
        for position, shape in enumerate(graph.shapes(task)):
            if shape and isinstance(shape[0], int):
                found[(name, place, position)] = shape[0]
    return found


def _exponents(graph: Graph, other: Graph, ratio: float) -> dict[str, float]:
    """How the mean time of a task of each name grows with the batch."""
    means = [_mean_times(each) for each in (graph, other)]
    found = {}
    for name in means[0].keys() & means[1].keys():
        one, two = means[0][name], means[1][name]
        if one > 0 and two > 0:
            found[name] = float(np.clip(math.log(two / one) / math.log(ratio), 0.0, _MOST_EXPONENT))
    return found


def _mean_times(graph: Graph) -> dict[str, float]:
    own = SelfTimes(graph).total_ns()
    work = graph.alive & np.isin(graph.column("kind"), (TaskKind.GPU, TaskKind.CPU))
    names = graph.column("name")[work]
    total = np.bincount(names, weights=own[work], minlength=len(graph.names))
    count = np.bincount(names, minlength=len(graph.names))
    return {
        name: total[row] / count[row] for row, name in enumerate(graph.names) if count[row] and name and name != PYTHON
    }


def _batch_time(graph: Graph, other: Graph) -> float | None:
    """Time of one batch where the profiles load with different numbers of workers and one of them waits for these."""
    known = []
    for each in (graph, other):
        loads = loads_of(each)
        if not loads:
            return None
        known.append((worker_count(each) if uses_workers(each) else 0, mean_step_ns(each), each))
    if known[0][0] == known[1][0]:
        return None
    workers = min(item[0] for item in known)
    if workers == 0:
        return None  # what loading in the loop takes is in the first profile already
    slower = max(known, key=lambda item: item[1])
    # the slower run with workers is paced by them
    return slower[1] * slower[0] if slower[0] == workers and slower[1] > 1.05 * min(item[1] for item in known) else None
