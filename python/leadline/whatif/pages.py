"""New pages of memory: what a CPU program pays where its allocator, or a recorder that takes memory in between, makes
the system hand them out anew.

Clearing memory is the one operator that only writes, so its speed tells. Whether the program pays for pages without the
recorder too, no trace says.
"""

from __future__ import annotations

import numpy as np

from leadline.whatif.elementwise import cpu_nanoseconds_per_byte, first_operand_bytes
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import TaskKind
from leadline.whatif.selftime import SelfTimes

_MUCH = 0.05  # of the CPU's time
PAGES = "new pages of memory, which the program may not need without the recorder"


def without_new_pages(graph: Graph) -> Graph | None:
    """The graph with memory cleared as fast as it is changed; None where that changes little."""
    clears = graph.select(name=r"^aten::(fill|zero)_$", kind=TaskKind.CPU)
    if not clears:
        return None
    per_byte = cpu_nanoseconds_per_byte(graph)
    times = SelfTimes(graph)
    own = times.total_ns()
    mine = np.maximum(own[clears.ids], 1).astype(np.float64)
    least = np.array([first_operand_bytes(graph, task) for task in clears]) * per_byte
    least = np.where(least > 0, np.minimum(least, mine), mine)
    if float((mine - least).sum()) < _MUCH * float(own[graph.alive].sum()):
        return None
    other = graph.copy()
    SelfTimes(other).scale(clears, least / mine)
    return other
