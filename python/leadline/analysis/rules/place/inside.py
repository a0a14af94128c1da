"""Where below a line of the program the CPU time outside of operators goes: the line of an installed package that takes
most of it, and whether that line turns Python's values into tensors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.case import Case
from leadline.analysis.columns import Rows, factorized, group_sums
from leadline.analysis.functions import METRIC
from leadline.analysis.origin import Origin, origin, package_path
from leadline.analysis.rules.place.at import At
from leadline.analysis.rules.place.converts import outlasts
from leadline.analysis.rules.place.fact import Fact
from leadline.schema import FrameKind
from leadline.units import percent

MUCH = 0.4
"""Of the place's CPU time, on one line."""


@dataclass(frozen=True)
class Inside:
    """`share`: of the CPU time of the rows; `converts`: the line calls operators and takes far longer than they do."""

    name: str
    file: str
    line: int
    share: float
    converts: bool

    @property
    def text(self) -> str:
        """`90 % of it in LogitsProcessorList.__call__ (transformers/generation/logits_process.py:98)`."""
        why = ", most likely turning Python's values into tensors" if self.converts else ""
        return f"{percent(self.share)} of it in {self.name} ({self.where}){why}"

    @property
    def instead(self) -> str:
        """What to do about it; empty where that is not known."""
        if not self.converts:
            return ""
        return (
            f"Give {self.name} a tensor (of the right type, on the right device) in place of a list, made once: a list "
            "is turned into a tensor, element by element, at each call."
        )

    @property
    def where(self) -> str:
        """`transformers/generation/logits_process.py:1587`."""
        return f"{package_path(self.file) or self.file}:{self.line}"


def inside_of(case: Case, rows: Rows) -> Inside | None:
    """The line of an installed package, below the user's, that takes most of the CPU time of `rows`; None where none
    takes much."""
    tree, scopes = case.tree, case.analysis.scopes
    samples = tree.exclusive(METRIC).sum[rows]
    whole = int(samples.sum())
    inner = case.inner_python
    own = rows[(samples > 0) & (scopes.inner[rows] < 0) & (inner[rows] >= 0)]
    if not whole or not len(own):
        return None
    key = factorized(tree.frame_of[inner[own]].astype(np.int64))
    sums = group_sums(key, tree.exclusive(METRIC).sum[own], int(key.max()) + 1)
    best = int(np.argmax(sums))
    node = tree.node(int(inner[own[key == best][0]]))
    if sums[best] < MUCH * whole or origin(node.file) != Origin.PACKAGE:
        return None
    mine = own[key == best]
    return Inside(node.name, node.file, node.line, sums[best] / whole, _converts(case, mine, int(sums[best])))


def _converts(case: Case, mine: Rows, ns: int) -> bool:
    tree = case.tree
    lines = np.unique(case.inner_python[mine])
    return outlasts(case, np.flatnonzero((tree.kinds == int(FrameKind.OPERATOR)) & np.isin(tree.parent, lines)), ns)


def inside(case: Case, at: At) -> Iterator[Fact]:
    """Of a place where Python takes the time."""
    found = None if at.operator else inside_of(case, at.rows)
    if found is not None:
        yield Fact("spends", f"spends {found.text}", 0.75 if found.converts else 0.45, found.instead)
