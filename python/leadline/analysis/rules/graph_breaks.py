"""`graph_breaks`: a compiled function falls into pieces with Python between them."""

from __future__ import annotations

import re

import numpy as np

from leadline.analysis.rules.base import CannotTell, Case, Finding, Gain, Line, Option, Rule, Severity, Values
from leadline.schema import FrameKind
from leadline.units import percent

_RESUMED = re.compile(r"torch_dynamo_resume_in_(?P<function>\w+?)_at_(?P<line>\d+)")


class GraphBreaks(Rule):
    name = "graph_breaks"
    asks = "Is a compiled function split into several graphs?"
    options = (Option("share", 5, "%", "of the step that runs after a graph break"),)

    def check(self, case: Case, values: Values) -> list[Finding]:
        if not case.named(FrameKind.PHASE, "compile").any():
            raise CannotTell("nothing was compiled")
        resumed = case.matching(FrameKind.PYTHON, _RESUMED.pattern)
        behind = int(case.inclusive_time[case.first_of(resumed & case.loop.inside)].sum())
        share = case.share(behind)
        places: dict[tuple[str, int], Line] = {}
        for row in np.flatnonzero(resumed & case.loop.inside)[:1000].tolist():
            node = case.tree.node(row)
            found = _RESUMED.search(node.name)
            if found:
                line = int(found["line"])
                places.setdefault((node.file, line), case.line_at(node.file, line, found["function"]))
        if not places or share < values["share"]:
            return []
        lines = tuple(sorted(places.values(), key=lambda line: (line.file, line.line)))
        return [
            Finding(
                self.name,
                Severity.WARNING,
                f"Compiled code breaks at {len(lines)} place{'s' if len(lines) != 1 else ''}; {percent(share)} "
                "of the step runs after a graph break",
                self._gain(case, behind, resumed & case.loop.inside),
                tuple(np.flatnonzero(resumed)[:20].tolist()),
                lines[:3],
                ("Python runs after a break, and the rest is compiled as another function",),
                "Remove what cannot be traced (.item(), print, data-dependent if) from compiled code; "
                "torch.compile(fullgraph=True) names the reason.",
                self.learn_more,
                share,
            )
        ]

    def _gain(self, case: Case, behind: int, resumed: np.ndarray) -> Gain:
        """Python goes on at a break: guards are checked and frames entered once more for every piece."""
        python = case.python_ns(case.mask(np.flatnonzero(resumed)))
        return case.gain_sums(
            (0, 0.1 * behind + 0.5 * python, 0.6 * behind + case.between_ns),
            "estimate: the code after the break is compiled with the rest, without Python between",
        )
