"""`kernel_speedup`: the kernels (or, on CPU, operators) whose name matches become `factor` times faster."""

from __future__ import annotations

import re

import numpy as np

from leadline.units import percent
from leadline.whatif.draws import Draw
from leadline.whatif.graph import Graph
from leadline.whatif.kernels import KernelTable
from leadline.whatif.kinds import Selection, TaskKind
from leadline.whatif.scenarios.base import Applied, Parameter, Scenario, ScenarioError, Values, count, require_positive
from leadline.whatif.selftime import PYTHON, SelfTimes
from leadline.whatif.tables import CROWDED, HIDDEN
from leadline.whatif.units import Unit


class KernelSpeedup(Scenario):
    """Divides durations; without a pattern it takes the kernel with the largest total time."""

    name = "kernel_speedup"
    never_slower = True
    of_operations = True
    advice = "make the most expensive kernel faster"
    hypothetical = True
    parameters = (
        Parameter("kernel", Unit.TEXT, "regular expression on kernel (or operator) names; default: the most expensive"),
        Parameter("factor", Unit.FACTOR, "how many times faster", "2"),
    )

    def applicable(self, graph: Graph, values: Values) -> str | None:
        if not _candidates(graph):
            return "the trace has neither kernels nor operators"
        if values.text("kernel") and not _chosen(graph, values)[0]:
            return f"no kernel or operator matches {values.text('kernel')!r}"
        return None

    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        require_positive(self.name, values, ["factor"])
        tasks, what = _chosen(graph, values)
        factor = values.number("factor")
        if KernelTable(graph).kernels:
            graph.scale(tasks, 1 / factor)
        else:
            SelfTimes(graph).scale(tasks, 1 / factor)
        return Applied(graph, (f"{what} in 1/{factor:g} of its measured time",), count(tasks=len(tasks)))


def _candidates(graph: Graph) -> Selection:
    return KernelTable(graph).kernels or graph.select(kind=TaskKind.CPU) - graph.select(name=f"^{re.escape(PYTHON)}$")


def _chosen(graph: Graph, values: Values) -> tuple[Selection, str]:
    candidates = _candidates(graph)
    pattern = values.text("kernel")
    if pattern:
        try:
            return candidates & graph.select(name=pattern), f"every kernel that matches {pattern!r}"
        except re.error as error:
            raise ScenarioError(f"kernel={pattern} is not a regular expression ({error}); correct it.") from error
    # work that Leadline put in the place of what was not recorded is nobody's kernel
    candidates = candidates - graph.select(name=f"^({re.escape(HIDDEN)}|{re.escape(CROWDED)})$") or candidates
    names = graph.column("name")[candidates.ids]
    on_device = bool(KernelTable(graph).kernels)
    own = graph.column("duration_ns") if on_device else SelfTimes(graph).total_ns()
    total = np.bincount(names, weights=own[candidates.ids])
    hottest = int(total.argmax())
    share = total[hottest] / max(total.sum(), 1)
    shown = graph.names[hottest] if len(graph.names[hottest]) <= 80 else graph.names[hottest][:77] + "..."
    whole = "kernel" if on_device else "operator"
    return Selection(candidates.ids[names == hottest]), f"{shown} ({percent(share)} of all {whole} time)"
