"""`kept_results`: results of nearly all steps are alive at once: somebody keeps them, and memory grows.

By what was alive when memory peaked: as many results as were ever made at a place of the loop, instead of those of one
step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from leadline.analysis.calls_in_source import unique_lines
from leadline.analysis.columns import Mask, Rows, subtree_sums
from leadline.analysis.loop import is_setup, of_all_shapes
from leadline.analysis.origin import Origin, origin
from leadline.analysis.rules.base import CannotTell, Case, Finding, Line, Option, Rule, Severity, Values
from leadline.schema import FrameKind
from leadline.units import number, percent, size

_KEEPS = frozenset(("append", "extend", "add", "insert", "put", "appendleft", "setdefault", "update"))
_STEPS = 8
"""Steps whose results must be alive at once: a window of a few is kept on purpose."""
_NEARLY_ALL = 0.6
"""Of all that were made at a place; buffers that give back what is old hold less."""
_MOST_OF = 0.8
"""Of what is kept, to be below one line."""


class KeptResults(Rule):
    name = "kept_results"
    asks = "Are the results of all steps kept, so that memory grows?"
    options = (
        Option("share", 20, "%", "of the peak of memory; losses and metrics of each step are kept everywhere"),
        Option("info", 2, "%", "of the peak"),
        Option("bytes", 1e8, "bytes", "less memory is harmless"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        tree, steps = case.tree, case.loop.steps
        alive = np.maximum(tree.exclusive("peak_live_bytes").sum, 0)
        if not alive.any():
            raise CannotTell("memory was not measured")
        made = tree.exclusive("alloc_bytes")
        each = made.sum / np.maximum(made.count, 1)
        held = alive / np.maximum(each, 1)
        here = case.matching(FrameKind.OPERATOR, "^aten::")  # JAX gives its arguments back in other ways
        here = here & (case.loop.inside | case.rare_work) & ~is_setup(tree) & ~case.in_phase("optimizer")
        here &= ~case.in_phase("backward") & ~case.in_phase("compile")
        # of all shapes: what is called with another one in each step is made in one step, and alive in it
        ever, still = of_all_shapes(tree, case.analysis.scopes, made.count, held.astype(np.int64))
        kept = here & (made.count >= _STEPS) & (still >= _NEARLY_ALL * ever) & (held >= _STEPS)
        kept &= (still >= _STEPS * np.maximum(ever / steps, 1)) | (case.rare_work & (held >= _STEPS))
        bytes_of = np.where(kept, alive, 0)
        whole, peak = int(bytes_of.sum()), int(alive.sum())
        if whole < values["info"] * peak:
            return []
        row = _line(case, bytes_of, whole)
        if row < 0:
            return []
        below = case.mask([row]) & kept
        bytes_here = int(bytes_of[below].sum())
        results = int(held[below].max())
        share = bytes_here / max(peak, 1)
        grave = share >= values["share"] and bytes_here >= values["bytes"]
        what = case.function(row) or "This line"
        return [
            Finding(
                self.name,
                Severity.WARNING if grave else Severity.INFO,
                f"Results that {what} makes are all kept, {size(bytes_here)} and more with every step",
                case.no_gain("mainly memory; code that loops over all kept results becomes slower with every step"),
                tuple(np.flatnonzero(below)[:20].tolist()),
                unique_lines((*case.lines([row]), *_keepers(case, row))),
                (
                    f"{number(results)} results of one operator were alive at the peak of memory, of "
                    f"{number(int(made.count[below].max()))} that it made in {number(steps)} steps",
                    f"{percent(share)} of the memory of tensors at the peak",
                ),
                "Find the list or attribute that holds them; clear it after use, keep only numbers (`.item()`, "
                "`.detach().cpu()`), or add up instead of collecting.",
                self.learn_more,
                share / 2,
            )
        ]


def _line(case: Case, bytes_of: Rows, whole: int) -> int:
    """The lowest line of the user's below which most of it was made; -1 where there is none."""
    tree = case.tree
    below = subtree_sums(tree.shape, bytes_of)
    users: Mask = case.analysis.scopes.user == np.arange(len(tree))
    rows = np.flatnonzero(users & (below >= _MOST_OF * whole))
    depth = [len(tree.path_rows(int(row))) for row in rows.tolist()]
    return int(rows[int(np.argmax(depth))]) if len(rows) else -1


def _keepers(case: Case, row: int) -> list[Line]:
    """Lines of the functions on the way to a node that put something into a container."""
    found: list[Line] = []
    for at in reversed(case.tree.path_rows(row)):
        node = case.tree.node(at)
        if case.tree.kinds[at] != int(FrameKind.PYTHON) or origin(node.file) != Origin.USER:
            continue
        source = case.sources.of(node.file)
        function = source.function(node.line) if source is not None else None
        if function is not None:
            found += [case.line_at(node.file, line, node.name) for line in sorted(_putting(function))]
    return found[:2]


def _putting(function: ast.AST) -> Iterator[int]:
    for node in ast.walk(function):
        method = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
        added = isinstance(node, ast.AugAssign) and isinstance(node.value, ast.List | ast.Tuple)
        if method in _KEEPS or added:
            yield getattr(node, "lineno", 0)
