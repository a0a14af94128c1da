"""`saving_in_loop`: the steps wait for a checkpoint that is written, or for a copy of the model that is made."""

from __future__ import annotations

import numpy as np

from leadline.analysis.columns import Mask
from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.scopes import in_called
from leadline.schema import FrameKind
from leadline.units import duration, percent, size, times

_COPY = r"(^|/)copy\.py$"
_CLONES = ("aten::clone", "aten::_to_copy", "aten::copy_", "aten::set_", "aten::empty", "aten::empty_like")


_COPYING = 0.25
"""Of what is worth telling, in operators: Python's share of it is an estimate, and tells nothing of a few numbers."""


class SavingInLoop(Rule):
    name = "saving_in_loop"
    asks = "Do the steps wait for checkpoints to be written, or for deep copies of tensors?"
    on_cpu = True
    options = (
        Option("share", 5, "%", "of the step; a checkpoint now and then takes less"),
        Option("info", 2, "%", "less than that is no reason to change anything"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        saving = case.saving | (case.named(FrameKind.PHASE, "saving") & case.rare_work)
        written = case.tree.exclusive("call_time")
        made = [
            self._saved(case, group.row, group.rows, group.value, written.count, values)
            for group in case.by_line(saving, np.where(saving, written.sum, 0))[:3]
        ]
        copies = self._copies(case) & ~case.below(saving)
        made += [
            self._copied(case, group.row, group.rows, group.value, values)
            for group in case.by_line(copies, case.time)[:3]
        ]
        found = [one for one in made if one is not None]
        return sorted(found, key=lambda one: -one.weight)[:2]

    def _saved(
        self, case: Case, row: int, rows: np.ndarray, ns: int, counts: np.ndarray, values: Values
    ) -> Finding | None:
        ns = min(ns, int(case.beside_work_ns))  # what was saved before or behind the steps is no part of them
        share = case.share(ns)
        if share < values["info"]:
            return None
        number = int(counts[rows].sum())
        return Finding(
            self.name,
            Severity.WARNING if share >= values["share"] else Severity.INFO,
            f"Saving takes {percent(share)} of the step",
            case.gain(ns, (0.4, 0.9, 1), "the time of saving, measured"),
            tuple(np.sort(rows)[:20].tolist()),
            case.lines([row]),
            (
                f"{number:,} file{'s are' if number != 1 else ' is'} written in {case.loop.steps:,} steps, "
                f"{duration(ns)} in all: {duration(case.per_step(ns))} of a step's {duration(case.loop.step_ns)}",
            ),
            "Save every few hundred steps or minutes; where that is too rare, copy the state and write it in a thread "
            "(torch.distributed.checkpoint.async_save).",
            self.learn_more,
            share,
        )

    def _copies(self, case: Case) -> Mask:
        """Operators of deep copies."""
        found: Mask = in_called(case.tree, case.analysis.scopes, _COPY) & case.operators(*_CLONES)
        return found

    def _copied(self, case: Case, row: int, rows: np.ndarray, ns: int, values: Values) -> Finding | None:
        python = case.python_ns(case.mask(rows))
        share = case.share(ns + python)
        if share < values["info"] or case.share(ns) < _COPYING * values["info"]:
            return None
        number = int(case.calls[rows].max(initial=0))
        held = int(case.tree.exclusive("alloc_bytes").sum[case.mask(rows)].sum())
        return Finding(
            self.name,
            Severity.WARNING if share >= values["share"] else Severity.INFO,
            f"Deep copies of tensors take {percent(share)} of the step",
            case.and_warm(case.gain_of(rows, ns, (0.4, 0.9, 1), "the operators of copying")),
            tuple(np.sort(rows)[:20].tolist()),
            case.lines([row]),
            (
                f"{times(case.per_step(number))} tensors a step are copied, {size(case.per_step(held))}",
                f"{duration(case.per_step(ns))} a step",
            ),
            "Copy only when the result is kept, such as for a best model so far; update a copy that is there with "
            "torch._foreach_copy_ or load_state_dict, and average weights with torch.optim.swa_utils.AveragedModel.",
            self.learn_more,
            share,
        )
