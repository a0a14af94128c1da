"""`uncoalesced`: a hot kernel asks for memory in more pieces than its queue takes."""

from __future__ import annotations

import re

import numpy as np

from leadline.analysis.hardware import hardware_of
from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.instruction_samples import SampledKernels
from leadline.schema import FrameKind
from leadline.units import duration, percent

_QUEUES = ("lg_throttle", "tex_throttle")
_WIDEST = re.compile(r"(LDG?|STG?)(\..*)?\.128\b")
"""Sixteen bytes for each thread, the most that an instruction moves: its queue is full of data, not of pieces."""
_LOCAL = re.compile(r"(LDL|STL)\b")
_PIECES = (
    "Many small accesses at once fill the queue: let the threads of a warp read neighbouring elements (make the input "
    "contiguous, or swap the loops so that the last dimension is the thread's), and load several at once (float4, "
    "tl.load of a block)."
)
_SPILLED = (
    "These are accesses to local memory, where a thread keeps what does not fit into its registers and arrays that it "
    "indexes by variables: give each thread less to hold (smaller tiles, more warps), or unroll such loops."
)


class Uncoalesced(Rule):
    name = "uncoalesced"
    asks = "Does a kernel request device memory in more pieces than can be in flight?"
    options = (
        Option("share", 5, "%", "of the device time that the kernel takes"),
        Option("full", 20, "%", "of its samples that wait for room in the queue; well-shaped kernels wait for data, "
               "and loads and stores of 16 bytes, the widest, are not counted"),
        Option("samples", 100, "1", "of one kernel; fewer are too few to separate its stall reasons"),
        Option("sectors", 20, "1", "of 32 bytes that a load of a warp touches, where they were counted; the widest "
               "loads of neighbours take 16"),
    )  # fmt: skip

    def check(self, case: Case, values: Values) -> list[Finding]:
        if not case.tree.exclusive("global_requests").sum.any():
            return self._sampled(case, values)
        made = self._counted(case, values)
        try:
            return made + self._sampled(case, values)
        except CannotTell:
            return made

    def _counted(self, case: Case, values: Values) -> list[Finding]:
        """By the device's own counters: how many pieces of memory a load touches."""
        tree = case.tree
        kernels = (tree.kinds == int(FrameKind.KERNEL)) & case.loop.inside & (case.gpu_time > 0)
        made = []
        for group in case.grouped(kernels, case.gpu_time, tree.frames["name"][tree.frame_of].astype(np.int64)):
            share = group.value / max(case.cost_of_all, 1)
            if share < values["share"]:
                break
            found = hardware_of(tree, group.rows, case.name(group.row))
            if found is None or found.sectors is None or found.sectors < values["sectors"]:
                continue
            spare = 1 - 16 / found.sectors
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"{case.name(group.row)} touches {found.sectors:.0f} pieces of 32 bytes with each load of a warp",
                    case.gain(group.value, (0, 0.5 * spare, spare), "bound: no more pieces than its widest loads need"),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (
                        f"{duration(case.per_step(group.value))} a step, {percent(share)} of the device time",
                        f"counted for {duration(found.counted_ns)} of the kernel, replayed",
                    ),
                    _PIECES,
                    self.learn_more,
                    share * spare,
                )
            )
        return made

    def _sampled(self, case: Case, values: Values) -> list[Finding]:
        kernels = SampledKernels(case)
        made = []
        for kernel in kernels.hot(values["share"], values["samples"]):
            group = kernel.group
            waiting = kernels.waiting(group, *_QUEUES)
            narrow = waiting[[not _WIDEST.match(kernels.operation(row)) for row in waiting.tolist()]]
            pieces = int(kernels.lost[narrow].sum())
            full = pieces / kernel.seen
            found = hardware_of(case.tree, group.rows, "")
            if full < values["full"] or (found is not None and found.sectors is not None):
                continue  # what was counted is known better
            local = sum(int(kernels.lost[row]) for row in narrow.tolist() if _LOCAL.match(kernels.operation(row)))
            lines = kernels.lines(narrow) or kernels.hottest(narrow)
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"{case.name(group.row)} asks for memory faster than its queue takes it, in {percent(full)} of its "
                    f"samples, most at {lines[0][0]}",
                    case.gain(group.value, (0, 0.5 * full, full), "bound: the kernel without these waits"),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (
                        f"{duration(case.per_step(group.value))} a step, {percent(kernel.share)} of the device time",
                        "there: " + "; ".join(f"{place} {percent(count / kernel.seen)}" for place, count in lines),
                    ),
                    _SPILLED if 2 * local > pieces else _PIECES,
                    self.learn_more,
                    kernel.share * full,
                )
            )
        return made
