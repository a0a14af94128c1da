"""`synchronisation`: the step stops to wait for the device: `.item()`, `.cpu()`, `nonzero`, explicit waits."""

from __future__ import annotations

import numpy as np

from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.debug_modes import checked_for_nan
from leadline.analysis.rules.jaxwaits import of_jax, waiting
from leadline.analysis.sourcecode import carries_state
from leadline.schema import FrameKind
from leadline.units import duration, percent, times

_READS = tuple(
    f"aten::{name}"
    for name in ("item", "_local_scalar_dense", "is_nonzero", "equal", "allclose", "Int", "Float", "Bool")
)
"""What is asked for a value; other operators that read one check their arguments on the CPU, which no GPU waits for."""
_READ_ONCE = "Compute with tensors and read one result at the end of the step (or every hundred steps)."
_NEEDED = (
    "Each iteration of this loop needs the result of the last one, so the values may have to be read; process "
    "several sequences (environments, samples) in one iteration, and leave out reads that only check or log."
)


_OF_A_PACKAGE = (
    "The package reads them, to decide what it does next: see whether it has an option that needs no values (a fixed "
    "number of steps, no checks of arguments), or call it less often."
)


_WAITED = "Leave the wait out where nothing after it reads what the device computes; time with events instead."
_COPIED = (
    "Pin the host's memory (pin_memory=True) and copy to the device with non_blocking=True; copies to the host must be "
    "waited for before they are read, so do them once a step."
)
_KEPT = "Keep the value on the device: add losses up as tensors and read them every hundred steps."
_SELECTED = "The number of elements must be known on the CPU: use torch.where, or a mask of a fixed size."


def _remedy(what: str) -> str:
    """By what waits: a wait that the program asks for, a selection, a copy, or a value that is read."""
    name = what.lower()
    if "synchronize" in name:
        return _WAITED
    if any(key in name for key in ("nonzero", "index", "masked_select", "unique")):
        return _SELECTED
    return _COPIED if "memcpy" in name or "aten::to" in name or "copy" in name else _KEPT


class Synchronisation(Rule):
    name = "synchronisation"
    asks = "Does the step read values back from tensors, or wait for the device?"
    on_cpu = True
    options = (
        Option(
            "per_step", 4, "1", "reading the loss once a step is usual; many reads a step are a habit worth breaking"
        ),
        Option("share", 5, "%", "waits that take less of the step are not what makes it slow"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        loop = case.loop
        ours = loop.inside & ~case.in_phase("optimizer") & ~case.in_phase("data loading") & ~case.in_phase("compile")
        read = case.operators("aten::_local_scalar_dense") & ours
        read &= ~case.below(checked_for_nan(case))
        asked = case.named(FrameKind.OPERATOR, *_READS)
        read &= (case.analysis.scopes.outer >= 0) & asked[np.maximum(case.analysis.scopes.outer, 0)]
        waits = np.where(ours, case.tree.exclusive("sync_time").sum, 0)
        found = [
            waiting(case, group, values, self.learn_more)
            if of_jax(case, group.row)
            else self._waiting(case, group.row, group.rows, group.value, values)
            for group in case.by_line(waits > 0, waits)
        ]
        made = [one for one in found if one is not None]
        if not case.has_device:
            made += self._reads(case, read, values)
        return made

    def _waiting(self, case: Case, row: int, rows: np.ndarray, ns: int, values: Values) -> Finding | None:
        share = case.share(ns)
        if share < values["share"]:
            return None
        above = case.name(int(case.analysis.scopes.outer[row])) or case.name(row)
        count = int(case.tree.exclusive("sync_time").count[rows].sum())
        return Finding(
            self.name,
            Severity.WARNING,
            f"{above} waits for the device {times(case.per_step(count))} times a step, {percent(share)} of its time",
            case.gain(ns, (0, 0.5, 1), "bound: the waits on this line; the device's own work remains"),
            tuple(rows[:20].tolist()),
            case.lines([row]),
            (f"{duration(case.per_step(ns))} of waiting a step",),
            _remedy(above),
            self.learn_more,
            share,
            "remove_sync",
        )

    def _reads(self, case: Case, read: np.ndarray, values: Values) -> list[Finding]:
        """On the CPU alone nothing waits, but the same program on a GPU would."""
        made = []
        for group in case.by_line(read, case.calls):
            each = case.per_step(group.value)
            if each < values["per_step"]:
                break
            spared = case.mask(group.rows)
            ns = int(case.inclusive_time[case.first_of(spared)].sum())
            line = case.line(group.row)
            inside = f", {line.context}" if line and line.context else ""
            around = case.inner_loop(group.row)
            by = case.made_by(group.row)
            needed = around is not None and carries_state(around[1].node)
            made.append(
                Finding(
                    self.name,
                    Severity.INFO,
                    f"Values are read out of tensors {times(each)} times a step{inside}",
                    case.gain_of(
                        np.flatnonzero(spared),
                        ns,
                        (0, 0.5, 1),
                        "bound: the reads themselves; no device is in use here",
                    ),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (
                        f"{group.value:,} calls of {_reader(case, group.row)} in {case.loop.steps:,} steps",
                        *((f"most of them in {by}",) if by else ()),
                    ),
                    _OF_A_PACKAGE if by else _NEEDED if needed else _READ_ONCE,
                    self.learn_more,
                    case.share(ns),
                )
            )
        return made[:2]


def _reader(case: Case, row: int) -> str:
    """The operator the user called: `aten::item` rather than what is below it."""
    outer = int(case.analysis.scopes.outer[row])
    return case.name(outer) if outer >= 0 and case.tree.kinds[outer] == int(FrameKind.OPERATOR) else case.name(row)
