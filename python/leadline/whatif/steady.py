"""How long a step takes when it goes on for ever, where the window begins with a device that is behind.

The CPU of such a window begins ahead of its device. An edit that makes the device faster uses that lead up within the
window, so that the window ends sooner than so many steps take: from then on a step takes what its CPU needs.
"""

from __future__ import annotations

import numpy as np

from leadline._dataclass import dataclass
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import EdgeType, TaskKind
from leadline.whatif.simulator import Result, simulate


@dataclass(frozen=True)
class Steady:
    """`counts`: share of the CPU's time that counts. A window whose CPU needs more than the steps took, since its lead
    became smaller while it was recorded, counts as one whose CPU just keeps up: the replay is what was recorded."""

    counts: float = 1.0

    @staticmethod
    def of(graph: Graph, recorded: Result) -> Steady:
        """What holds for all edits of a graph. recorded: the graph itself, simulated."""
        needs = _needs_ns(graph) if recorded.begun_ns else 0
        return Steady(min(1.0, recorded.makespan_ns / needs) if needs > 0 else 1.0)

    def step_ns(self, graph: Graph, result: Result, warm_up: int = 0) -> float:
        """Mean time of a step of a graph that was simulated. warm_up: steps at the begin that only set the scene."""
        steps = result.per_step_ns[warm_up:]
        mean = float(steps.mean()) if steps.size else 0.0
        if warm_up or not steps.size or not result.begun_ns or result.given_ns <= result.makespan_ns:
            return mean
        return max(mean, self.counts * _needs_ns(graph) / steps.size)


def _needs_ns(graph: Graph) -> int:
    """What the CPU needs to launch all work of the window where it never waits for the device."""
    alone = graph.copy()
    device = np.isin(graph.column("kind"), (TaskKind.GPU, TaskKind.COMM))
    alone.tasks.write("duration_ns")[device] = 0
    alone.tasks.write("gap_ns")[device] = 0
    alone.tasks.write("earliest_ns")[device] = 0
    for kind in (EdgeType.PINNED, EdgeType.ROOM):
        alone.disconnect(kind)
    return simulate(alone).given_ns
