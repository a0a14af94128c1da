"""`redundant_work`: what was computed before is computed again, or recorded for a backward pass that never comes."""

from __future__ import annotations

import numpy as np

from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.broadcast_larger import broadcast_larger
from leadline.analysis.rules.computed_again import computed_again
from leadline.analysis.rules.constant_function import constant_function
from leadline.analysis.rules.discarded_results import discarded_results
from leadline.analysis.rules.equal_inputs import equal_inputs
from leadline.analysis.rules.partly_used import partly_used
from leadline.analysis.rules.passes_again import passes_again
from leadline.analysis.rules.prefix_again import prefix_again
from leadline.analysis.rules.product_order import product_order
from leadline.analysis.rules.recorded_in_vain import recorded_in_vain
from leadline.analysis.rules.same_inputs import same_inputs
from leadline.analysis.rules.sorted_for_few import sorted_for_few
from leadline.units import duration, percent, size

_JOINS = ("aten::cat", "aten::stack", "aten::pad", "aten::constant_pad_nd")
_DERIVED = tuple(
    f"aten::{name}"
    for name in (
        *(
            "to",
            "_to_copy",
            "bool",
            "tril",
            "triu",
            "tril_",
            "triu_",
            "eq",
            "ne",
            "lt",
            "le",
            "gt",
            "ge",
            "bitwise_not",
        ),
        *("logical_not", "bitwise_not", "masked_fill", "masked_fill_", "unsqueeze", "expand", "view", "reshape", "cat"),
        *("sub", "rsub", "mul", "fill_", "repeat"),
    )
)
"""What turns a new constant into a mask or positions, where it stands on the same line."""
_FACTORIES = tuple(f"aten::{name}" for name in ("ones", "zeros", "full", "arange", "eye", "linspace", "tril", "triu"))


_MOST_CONSTANTS = 20
_UNEVEN = 0.12
"""How far the spread of sizes may be from that of even steps."""


class RedundantWork(Rule):
    name = "redundant_work"
    asks = "Is a result computed or copied again that exists already?"
    options = (
        Option("share", 5, "%", "more than that justifies a change"),
        Option("info", 1, "%", "masks of healthy models take half a percent"),
        Option("growth", 4, "1", "the largest join against the smallest; padding to a batch's longest row stays below"),
        Option("all", 50, "%", "of the layers whose output is kept, where nothing in the program is trained"),
        Option("held", 4, "1", "layers whose output is kept; without gradients two are alive at once"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        found = self._rebuilt(case, values)
        found += same_inputs(case, self.name, self.learn_more, values["share"])
        found += equal_inputs(case, self.name, self.learn_more, values["share"])
        found += passes_again(case, self.name, self.learn_more, values["share"], values["info"])
        named = [row for one in found for row in one.paths]
        found += computed_again(case, self.name, self.learn_more, values, named)
        found += self._growing(case, values)
        found += discarded_results(case, self.name, self.learn_more, values["share"])
        found += product_order(case, self.name, self.learn_more)
        found += broadcast_larger(case, self.name, self.learn_more)
        found += partly_used(case, self.name, self.learn_more, values["share"])
        found += sorted_for_few(case, self.name, self.learn_more, values["share"])
        found += recorded_in_vain(case, self.name, self.learn_more, values)
        found += prefix_again(case, self.name, self.learn_more, values["share"])
        return sorted(found, key=lambda one: -one.weight)

    def _growing(self, case: Case, values: Values) -> list[Finding]:
        """Joins whose sizes are an arithmetic progression: the mean is the middle of smallest and largest, and the
        variance a twelfth of the square of what lies between. A few sizes that take turns differ in the second."""
        sizes = case.tree.exclusive("alloc_bytes")
        mean = sizes.sum / np.maximum(sizes.count, 1)
        middle = (sizes.min.astype(np.float64) + sizes.max) / 2
        grows = case.operators(*_JOINS) & ~case.in_phase("backward") & (sizes.count >= 20)
        grows &= (sizes.max >= values["growth"] * np.maximum(sizes.min, 1)) & (np.abs(mean - middle) <= 0.05 * middle)
        between = np.maximum(sizes.max - sizes.min, 1).astype(np.float64)
        variance = sizes.sum_squares / np.maximum(sizes.count, 1) - mean**2
        grows &= np.abs(np.sqrt(np.maximum(variance, 0) * 12) / between - 1) <= _UNEVEN
        made = []
        for group in case.by_line(grows, case.inclusive_time):
            share = case.share(group.value)
            if share < values["info"]:
                break
            row = group.row
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING if share >= values["share"] else Severity.INFO,
                    f"{case.name(row)} copies a tensor that grows at each call, {percent(share)} of the step",
                    case.gain_of(
                        group.rows,
                        group.value,
                        (0.5, 0.9, 1.25),
                        "bound: the time of these copies, and a quarter more for giving the old ones back",
                    ),
                    tuple(group.rows[:20].tolist()),
                    case.lines([row]),
                    (
                        f"from {size(int(sizes.min[row]))} to {size(int(sizes.max[row]))} in even steps, "
                        f"{int(sizes.count[row]):,} calls, {size(int(sizes.sum[row]))} copied in all",
                    ),
                    "Collect the parts in a list and join them once, or write into a tensor that was made large "
                    "enough.",
                    self.learn_more,
                    share,
                )
            )
        return made[:1]

    def _rebuilt(self, case: Case, values: Values) -> list[Finding]:
        """Constants made by the same line in several modules in every step."""
        scopes = case.analysis.scopes
        made_here = case.operators(*_FACTORIES) & (scopes.module >= 0) & ~case.in_phase("backward")
        made_here &= ~case.in_phase("optimizer") & ~case.in_phase("data loading")
        made = []
        made_here = case.first_of(made_here) & (case.code_line >= 0) & (case.user_line >= 0)
        for group in case.grouped(made_here, case.inclusive_time, case.code_line)[:_MOST_CONSTANTS]:
            share = case.share(group.value)
            modules = len(np.unique(scopes.module[group.rows]))
            if modules < 3:
                continue
            kinds = sorted({case.name(int(row)) for row in group.rows[:50]})
            rows, function, callers = _whole_line(case, group.row, group.rows), "", case.lines([group.row])
            if (whole := constant_function(case, group.row)) is not None:
                function, rows = whole
                callers = case.lines([group.row, *_callers(case, group.row)], 2)
                share = max(share, case.share(int(case.inclusive_time[rows].sum())))
            if share < values["info"]:
                continue
            ns = int(case.inclusive_time[rows].sum())
            spared = (modules - 1) / modules
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING if share >= values["share"] else Severity.INFO,
                    f"{modules} modules each make the same constant{function} in every step, {percent(share)} of it",
                    case.gain_of(
                        rows, ns, (0.4, spared, 1), "bound: all but the first, with what their line makes of them"
                    ),
                    tuple(group.rows[:20].tolist()),
                    callers,
                    (f"{', '.join(kinds)}: {duration(case.per_step(group.value))} a step",),
                    "Make it once, in the constructor (register_buffer) or at the top of the model's forward, "
                    "and hand it on.",
                    self.learn_more,
                    share,
                )
            )
        return sorted(made, key=lambda one: -one.weight)[:1]


def _callers(case: Case, row: int) -> list[int]:
    """The line that calls the function a node's line stands in."""
    user = int(case.analysis.scopes.user[row])
    above = int(case.tree.parent[user]) if user >= 0 else -1
    return [above] if above > 0 else []


def _whole_line(case: Case, row: int, rows: np.ndarray) -> np.ndarray:
    """The constants of a line, and operators of the same line that only turn them into something else."""
    here = case.code_line == case.code_line[row]
    derived = case.operators(*_DERIVED) & case.called & here
    chosen = np.zeros(len(case.tree), np.bool_)
    chosen[rows] = True
    return np.flatnonzero(case.first_of(chosen | derived))
