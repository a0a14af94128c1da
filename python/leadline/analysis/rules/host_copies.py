"""`host_copies`: each step of a JAX program copies NumPy data to the device, the same or so much that it takes time."""

from __future__ import annotations

import numpy as np

from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.jaxwork import programs
from leadline.schema import FrameKind
from leadline.units import duration, how_often, percent, size

_COPY = "NumPy array to the device"


class HostCopies(Rule):
    name = "host_copies"
    asks = "Does each step of a JAX program copy the same NumPy data to the device, or very large data?"
    options = (
        Option("least", 1e6, "bytes", "of the same data a step; less takes almost no time"),
        Option("share", 5, "%", "of the step in copies of the same data; above this a warning"),
        Option("new", 10, "%", "of the step in copies of new data, which a step needs; less is the price of training"),
        Option("per_step", 0.5, "1", "data that is copied now and then belongs to an epoch or an evaluation"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        programs(case)
        copies = case.named(FrameKind.OPERATOR, _COPY) & case.loop.inside
        again = copies & np.isin(case.tree.frame_of, self._again(case))
        moved = case.tree.exclusive("copy_bytes")
        made = []
        for mask, same in ((again, True), (copies & ~again, False)):
            for group in case.by_line(mask, moved.sum):
                often = case.per_step(float(moved.count[group.rows].sum()))
                ns = int(case.time[group.rows].sum())
                share, size_ = case.share(ns), case.per_step(group.value)
                enough = size_ >= values["least"] or share >= values["share"] if same else share >= values["new"]
                if enough and often >= values["per_step"]:
                    made.append(self._finding(case, group.row, group.rows, (often, size_, ns), same, values))
        return made[:3]

    def _again(self, case: Case) -> list[int]:
        frames = np.flatnonzero(case.tree.frame_rows(FrameKind.OPERATOR, _COPY))
        return [frame for frame in frames.tolist() if "again" in case.tree.text("detail", frame)]

    def _finding(
        self, case: Case, row: int, rows: np.ndarray, copied: tuple[float, float, int], same: bool, values: Values
    ) -> Finding:
        often, size_, ns = copied
        share = case.share(ns)
        what = "The same NumPy data is" if same else "NumPy data is"
        known = f"{duration(case.per_step(ns))} a step" if ns else "copied by the call of the program, in its time"
        return Finding(
            self.name,
            Severity.WARNING if same and share >= values["share"] else Severity.INFO,
            f"{what} copied to the device {how_often(often)} a step, {size(size_)}"
            + (f" and {percent(share)} of its time" if ns else ""),
            case.gain(ns, (0.5, 1, 1) if same else (0, 0.5, 1), "bound: the copies")
            if ns
            else case.no_gain("the time of the copies is not known"),
            tuple(rows[:20].tolist()),
            case.lines([row]),
            (known,),
            "Put it on the device once, before the loop (data = jax.device_put(data)), and give the steps that."
            if same
            else "Put the next batch on the device before this one is done: jax.device_put does not wait, so one "
            "batch ahead is enough (flax.jax_utils.prefetch_to_device does that).",
            self.learn_more,
            share,
        )
