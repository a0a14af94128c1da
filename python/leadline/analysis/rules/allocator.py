"""`allocator`: memory that stays from step to step, or is taken from the driver again and again."""

from __future__ import annotations

import ast

import numpy as np

from leadline.analysis.calls_in_source import name_of
from leadline.analysis.columns import factorized
from leadline.analysis.loop import of_all_shapes
from leadline.analysis.rules.base import CannotTell, Case, Finding, Line, Option, Rule, Severity, Values
from leadline.schema import FrameKind
from leadline.units import percent, size, times

_NEW_MEMORY_NS = 0.6
_NEW_MEMORY_MOST_NS = 1.0
"""Nanoseconds a byte that a page takes when it is used for the first time (bench/new_memory.py)."""


class Allocator(Rule):
    name = "allocator"
    asks = "Does memory grow from step to step, or come from the driver in every step?"
    options = (
        Option("alive", 80, "%", "of what a line allocated over all steps was alive at the peak: it was kept"),
        Option("peak", 20, "%", "of the peak; less is harmless"),
        Option("least", 1_000_000, "bytes", "a smaller leak is a list of numbers"),
        Option("driver", 0.5, "1", "requests to the driver a step once warm; the caching allocator needs none"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        if not case.tree.exclusive("alloc_bytes").count.any():
            raise CannotTell("memory was not measured")
        return self._kept(case, values) + self._driver(case, values)

    def _kept(self, case: Case, values: Values) -> list[Finding]:
        tree, loop = case.tree, case.loop
        allocated, alive = tree.exclusive("alloc_bytes"), tree.exclusive("peak_live_bytes").sum
        each_step = loop.inside & (allocated.count >= max(5, 0.9 * loop.steps))
        # arrays and variables that were made once, and are known by being alive, were made by nothing that ran here
        each_step &= tree.exclusive("call_time").count > 0
        for phase in ("optimizer", "data loading", "compile"):
            each_step &= ~case.in_phase(phase)
        # of all shapes: what is called with another one in each step is alive in that step
        still, ever = of_all_shapes(tree, case.analysis.scopes, alive, allocated.sum)
        kept = each_step & (still >= values["alive"] * ever) & (allocated.sum > 0)
        total = int(alive.sum())
        held = int(alive[kept].sum())
        if held < values["least"] or held < values["peak"] * total:
            return []
        rows = np.flatnonzero(kept)
        rows = rows[np.argsort(-alive[rows], kind="stable")]
        names = np.unique(factorized(case.user_line[rows], rows))
        keepers = self._keepers(case, rows)
        known = {(line.file, line.line) for line in keepers}
        lines = (*keepers, *(one for one in case.lines(rows.tolist()) if (one.file, one.line) not in known))
        return [
            Finding(
                self.name,
                Severity.WARNING,
                f"Memory of every step is kept: {size(held)}, {percent(held / total)} of the peak",
                case.gain_sums(
                    (0, held * _NEW_MEMORY_NS, held * _NEW_MEMORY_MOST_NS),
                    "mainly memory; kept memory is not reused, and new memory takes up to 1 ns a byte",
                ),
                tuple(rows[:20].tolist()),
                lines[:3],
                (
                    f"{size(held / loop.steps)} more with each of {loop.steps:,} steps, on {len(names)} call paths",
                    "memory that this line allocated in all steps was live at the peak",
                ),
                "Keep numbers or detached tensors (loss.detach(), loss.item()) across steps: a loss keeps the whole "
                "graph of its computation alive.",
                self.learn_more,
                held / total / 2,
            )
        ]

    def _keepers(self, case: Case, rows: np.ndarray) -> tuple[Line, ...]:
        """Lines of the loop's function that put a tensor computed in the loop away: `losses.append(loss)`."""
        found: list[Line] = []
        seen: set[tuple[str, int]] = set()
        for row in [*case.loop.anchors[:20].tolist(), *rows[:5].tolist()]:
            for at in case.tree.path_rows(row):
                if case.tree.kinds[at] != int(FrameKind.PYTHON):
                    continue
                node = case.tree.node(at)
                source = case.sources.of(node.file)
                function = source.function(node.line) if source and node.file.endswith(".py") else None
                place = (node.file, getattr(function, "lineno", 0))
                if function is None or place in seen or "/site-packages/" in node.file:
                    continue
                seen.add(place)
                name = "" if node.name == "<module>" else node.name
                found += [case.line_at(node.file, line, name) for line in _put_away(function)]
        return tuple({(line.file, line.line): line for line in found}.values())[:2]

    def _driver(self, case: Case, values: Values) -> list[Finding]:
        taken = case.tree.exclusive("device_alloc_bytes")
        number = np.where(case.loop.inside, taken.count, 0)
        made = []
        for group in case.by_line(number > 0, number):
            each = case.per_step(group.value)
            if each < values["driver"]:
                break
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"Memory is taken from the driver {times(each)} times a step",
                    case.no_gain("each request stops the device; the time is not measured"),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (f"{size(int(taken.sum[group.rows].sum()))} in {case.loop.steps:,} steps", *self._given_back(case)),
                    "Leave out torch.cuda.empty_cache(), pad inputs to few sizes, or set "
                    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
                    self.learn_more,
                    0.1,
                )
            )
        return made[:1]

    def _given_back(self, case: Case) -> tuple[str, ...]:
        """Who gives memory back to the driver, so that it must be asked again."""
        number = np.where(case.loop.inside, case.tree.exclusive("device_free_bytes").count, 0)
        for group in case.by_line(number > 0, number)[:1]:
            line = case.line(group.row)
            where = f" at {line.short}:{line.line}" if line else ""
            return (f"{times(case.per_step(group.value))} times a step memory is given back to the driver{where}",)
        return ()


def _put_away(function: ast.AST) -> list[int]:
    """Lines in loops of `function` that keep (append, add up) a name which was assigned in that loop from a call."""
    found = []
    for loop in (node for node in ast.walk(function) if isinstance(node, ast.For | ast.While | ast.AsyncFor)):
        computed = {
            target.id
            for node in ast.walk(loop)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call | ast.BinOp)
            for target in node.targets
            if isinstance(target, ast.Name) and not _is_number(node.value)
        }
        for node in ast.walk(loop):
            kept: ast.AST | None = None
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
                kept = node.value
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("append", "add", "appendleft")
                and node.args
            ):
                kept = node.args[0]
            if isinstance(kept, ast.Name) and kept.id in computed:
                found.append(int(getattr(node, "lineno", 0)))
    return sorted(set(found))


def _is_number(value: ast.expr) -> bool:
    """`loss.item()`, `float(loss)`, `loss.detach()`: nothing that holds a graph."""
    if not isinstance(value, ast.Call):
        return False
    called = value.func
    name = name_of(called)
    return name in ("item", "float", "int", "detach", "tolist", "len", "numpy")
