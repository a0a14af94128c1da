"""`small_copies`: many small copies between host and device."""

from __future__ import annotations

import numpy as np

from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.schema import FrameKind
from leadline.units import duration, size, times


class SmallCopies(Rule):
    name = "small_copies"
    asks = "Are there many small copies between host and device?"
    options = (
        Option("bytes", 65_536, "bytes", "below that a copy costs its launch, not its bytes"),
        Option("copies", 16, "1", "of one line and step; a batch of a few tensors needs a few copies"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        case.need_device()
        moved = case.tree.exclusive("copy_bytes")
        host = case.matching(FrameKind.COPY, r"HtoD|DtoH") & case.loop.inside
        number = np.where(host, moved.count, 0)
        made = []
        for group in case.by_line(host, number):
            each = case.per_step(group.value)
            total = int(moved.sum[group.rows].sum())
            if each < values["copies"]:
                break
            if total / group.value >= values["bytes"]:
                continue
            ns = int(case.gpu_time[group.rows].sum())
            launches = group.value * 5_000
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"{times(each)} copies a step of {size(total / group.value)} each",
                    case.gain(ns + launches, (0, 0.6, 1), "estimate: the copies and 5 µs to start each"),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (f"{size(case.per_step(total))} and {duration(case.per_step(ns))} of copying a step",),
                    "Create tensors on the device, or put them into one and copy that.",
                    self.learn_more,
                    case.share(ns + launches),
                )
            )
        return made[:2]
