"""`bank_conflicts`: a hot kernel waits for shared memory, whose banks its threads hit several at a time."""

from __future__ import annotations

import re

import numpy as np

from leadline.analysis.case import Group
from leadline.analysis.columns import Rows
from leadline.analysis.hardware import hardware_of
from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.instruction_samples import SampledKernels
from leadline.analysis.rules.registers import Function, functions
from leadline.schema import FrameKind
from leadline.units import duration, percent

_SHARED = re.compile(r"(LDS|STS|LDSM|STSM|ATOMS)\b")
_QUEUE, _RESULT = "mio_throttle", "short_scoreboard"
_REMEDY = (
    "Let the threads of a warp touch different banks of four bytes: pad the rows of the tile (tile[32][33]), swizzle "
    "its columns, or let neighbouring threads touch neighbouring words; in Triton another block shape or order."
)


class BankConflicts(Rule):
    name = "bank_conflicts"
    asks = "Does a kernel wait for shared memory because threads of a warp access the same bank?"
    options = (
        Option("share", 5, "%", "of the device time that the kernel takes"),
        Option("waits", 30, "%", "of its samples wait for shared memory; tiled matrix products wait in 10 to 20 %"),
        Option("conflicts", 30, "%", "of shared memory's passes, where they were counted; most kernels have a few"),
        Option("samples", 100, "1", "of one kernel; fewer are too few to separate its stall reasons"),
    )  # fmt: skip

    def check(self, case: Case, values: Values) -> list[Finding]:
        counted = case.tree.exclusive("shared_wavefronts").sum.any()
        try:
            kernels = SampledKernels(case)
        except CannotTell:
            if not counted:
                raise CannotTell(
                    "neither instructions of kernels were sampled nor their bank conflicts counted "
                    "(leadline run --instructions, or --gpu-metrics shared --replay)"
                ) from None
            kernels = None
        made = self._counted(case, values) if counted else []
        return made if kernels is None else made + self._sampled(case, kernels, values)

    def _counted(self, case: Case, values: Values) -> list[Finding]:
        """By the device's own counters."""
        tree = case.tree
        kernels = (tree.kinds == int(FrameKind.KERNEL)) & case.loop.inside & (case.gpu_time > 0)
        made = []
        for group in case.grouped(kernels, case.gpu_time, tree.frames["name"][tree.frame_of].astype(np.int64)):
            share = group.value / max(case.cost_of_all, 1)
            if share < values["share"]:
                break
            found = hardware_of(tree, group.rows, case.name(group.row))
            if found is None or found.conflicts is None or found.conflicts < values["conflicts"]:
                continue
            title = (
                f"{case.name(group.row)} spends {percent(found.conflicts)} of shared memory's passes on bank conflicts"
            )
            evidence = f"counted for {duration(found.counted_ns)} of the kernel"
            made.append(self._finding(case, group, share, title, found.conflicts, evidence))
        return made

    def _sampled(self, case: Case, kernels: SampledKernels, values: Values) -> list[Finding]:
        """By what instructions waited for. Heavy use of shared memory without conflicts looks the same, so it is said
        as what it is."""
        code = functions(case.tree.tables)
        made = []
        for kernel in kernels.hot(values["share"], values["samples"]):
            group = kernel.group
            waiting = _for_shared_memory(kernels, kernels.waiting(group, _QUEUE, _RESULT), code)
            part = int(kernels.lost[waiting].sum()) / kernel.seen
            found = hardware_of(case.tree, group.rows, "")
            if part < values["waits"] or (found is not None and found.conflicts is not None):
                continue  # what was counted is known better
            places = kernels.lines(waiting) or kernels.hottest(waiting)
            title = (
                f"{case.name(group.row)} waits for shared memory in {percent(part)} of its samples, most at "
                f"{places[0][0]}, which suggests bank conflicts"
            )
            evidence = "there: " + "; ".join(f"{place} {percent(count / kernel.seen)}" for place, count in places)
            made.append(self._finding(case, group, kernel.share, title, part, evidence))
        return made

    def _finding(self, case: Case, group: Group, share: float, title: str, part: float, evidence: str) -> Finding:
        return Finding(
            self.name,
            Severity.WARNING,
            title,
            case.gain(group.value, (0, 0.4 * part, part), "bound: the kernel without these waits"),
            tuple(group.rows[:20].tolist()),
            case.lines([group.row]),
            (f"{duration(case.per_step(group.value))} a step, {percent(share)} of the device time", evidence),
            _REMEDY,
            self.learn_more,
            share * part,
        )


def _for_shared_memory(kernels: SampledKernels, waiting: Rows, code: dict[tuple[str, str], Function]) -> Rows:
    """Those that wait for room in shared memory's queue to enter it, or for what was read from it. The queue and the
    reason are also those of special functions and shuffles, so a wait for a result counts where its writer is known."""
    return waiting[[_waits(kernels, row, code) for row in waiting.tolist()]]


def _waits(kernels: SampledKernels, row: int, code: dict[tuple[str, str], Function]) -> bool:
    if _SHARED.match(kernels.operation(row)):
        return True
    if kernels.reason(row) != _RESULT:
        return False
    function = code.get(kernels.function(row))
    writer = function.writer(kernels.offset(row)) if function is not None else ""
    return bool(_SHARED.match(writer))
