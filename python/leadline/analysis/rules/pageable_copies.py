"""`pageable_copies`: batches are copied from memory that is not pinned, so nothing runs beside the copy."""

from __future__ import annotations

import numpy as np

from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.schema import FrameKind
from leadline.units import duration, percent, size


class PageableCopies(Rule):
    name = "pageable_copies"
    asks = "Are batches copied to the device from memory that is not pinned?"
    options = (
        Option("share", 3, "%", "of the step that these copies take; less is not worth pinning"),
        Option("bytes", 65_536, "bytes", "a step; scalars and sizes are copied this way by everyone"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        case.need_device()
        copies = case.matching(FrameKind.COPY, r"HtoD.*Pageable") & case.loop.inside
        made = []
        for group in case.by_line(copies, case.gpu_time):
            moved = int(case.tree.exclusive("copy_bytes").sum[group.rows].sum())
            share = case.share(group.value)
            if share < values["share"]:
                break
            if case.per_step(moved) < values["bytes"]:
                continue
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"Batches are copied from pageable memory, {percent(share)} of the step",
                    case.gain(group.value, (0.2, 0.6, 1), "bound: the copies, fully overlapped with work"),
                    tuple(np.sort(group.rows)[:20].tolist()),
                    case.lines([group.row]),
                    (f"{size(case.per_step(moved))} in {duration(case.per_step(group.value))} a step",),
                    "Use DataLoader(pin_memory=True) and tensor.to(device, non_blocking=True).",
                    self.learn_more,
                    share,
                )
            )
        return made[:1]
