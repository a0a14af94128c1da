"""`no_straggler`: every rank is as fast as the average one.

Work that all ranks do is compared between them: the k-th task of a name in a step and phase. Compute takes the mean of
its counterparts, communication their median (the ideal of "Understanding Stragglers in Large Model Training Using
What-if Analysis", OSDI 2025). Waiting disappears by itself, since collectives are a rendezvous and a transfer.
"""

from __future__ import annotations

import numpy as np

from leadline.whatif.draws import Draw
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import IntArray, TaskKind
from leadline.whatif.scenarios.base import Applied, Scenario, Values, count


class NoStraggler(Scenario):
    """Sets the durations of counterparts on all ranks to a common value."""

    name = "no_straggler"
    never_slower = True
    of_operations = True
    advice = "find and replace the slow worker, or balance the work between ranks"

    def applicable(self, graph: Graph, values: Values) -> str | None:
        ranks = {lane.rank for lane in graph.lanes}
        if len(ranks) < 2:
            return "the trace is of one rank; give the traces of all ranks together (a folder or a .tar.gz)"
        return None

    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        alive = np.flatnonzero(graph.alive)
        rank = graph.rank_of_tasks()[alive]
        if graph.info.of_operations:
            return _level_operations(graph, alive)
        keys = [graph.column(name)[alive] for name in ("step", "phase", "kind", "name")]
        order = graph.column("order")[alive]
        # position of a task among those of the same key on its rank
        by_key = np.lexsort((order, rank, *reversed(keys)))
        same = np.ones(alive.size, dtype=np.bool_)
        columns = [*keys, rank]
        same[1:] = np.all([column[by_key][1:] == column[by_key][:-1] for column in columns], axis=0)
        same[0] = False
        starts = np.flatnonzero(~same)
        occurrence = np.arange(alive.size) - np.repeat(starts, np.diff(np.append(starts, alive.size)))
        number = np.empty(alive.size, dtype=np.int64)
        number[by_key] = occurrence
        table = np.stack([*keys, number], axis=1)
        _, counterpart = np.unique(table, axis=0, return_inverse=True)
        counterpart = counterpart.reshape(-1)
        members = np.bincount(counterpart)
        ranks = len(np.unique(rank))
        duration, gap = graph.column("duration_ns")[alive], np.maximum(graph.column("gap_ns")[alive], 0)
        matched = members[counterpart] == ranks
        mean = np.bincount(counterpart, weights=duration) / np.maximum(members, 1)
        mean_gap = np.bincount(counterpart, weights=gap) / np.maximum(members, 1)
        new = mean[counterpart].copy()
        communication = keys[2] == TaskKind.COMM
        shared = np.flatnonzero(communication & matched)
        # sorted by counterpart and time the middle of each group of as many as there are ranks is its median
        ordered = shared[np.lexsort((duration[shared], counterpart[shared]))].reshape(-1, ranks)
        new[ordered] = np.median(duration[ordered], axis=1)[:, None]
        chosen = matched if not draw.cautious("straggling CPU") else matched & (keys[2] != TaskKind.CPU)
        ids = alive[chosen]
        graph.set_duration(ids, np.rint(new[chosen]).astype(np.int64))
        host = chosen & (keys[2] == TaskKind.CPU)
        graph.set_gap(alive[host], np.rint(mean_gap[counterpart[host]]).astype(np.int64))
        unmatched = int((~matched).sum())
        warnings: tuple[str, ...] = ()
        if unmatched > alive.size / 2:
            warnings = (f"{unmatched} of {alive.size} tasks have no counterpart on every rank and keep their time",)
        return Applied(
            graph,
            (
                "the k-th task of a name in a step and phase is the same work on every rank",
                "compute takes the mean over ranks, communication the median",
                "at the high end of the range CPU work stays unchanged",
            ),
            count(tasks=int(chosen.sum()), ranks=ranks),
            warnings,
        )


def _level_operations(graph: Graph, tasks: IntArray) -> Applied:
    """The ideal of the paper: operations of a kind take as long on every worker and in every step."""
    kind, duration = graph.column("name")[tasks], graph.column("duration_ns")[tasks]
    communication = graph.column("kind")[tasks] == TaskKind.COMM
    new = duration.astype(np.float64)
    for one in np.unique(kind):
        same = kind == one
        new[same] = np.median(duration[same]) if communication[same][0] else duration[same].mean()
    graph.set_duration(tasks, np.rint(new).astype(np.int64))
    ranks = len({lane.rank for lane in graph.lanes})
    return Applied(
        graph,
        (
            "computations take the mean, communications the median of their kind over all workers and steps",
            "delays before operations that nothing in the file explains stay; the comparison without them is what "
            "`leadline whatif` says of this file without a scenario",
        ),
        count(operations=int(tasks.size), ranks=ranks),
    )
