"""`small_grid`: kernels with fewer blocks than the device has units to run them on."""

from __future__ import annotations

import numpy as np

from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.hot_kernels import hot_kernels, recorded_kernels
from leadline.analysis.rules.words import kernel
from leadline.profiles.makers import is_amd
from leadline.units import duration, percent


class SmallGrid(Rule):
    name = "small_grid"
    asks = "Do long kernels that take much of the device's time have too few blocks to fill it?"
    options = (
        Option("share", 5, "%", "of the device time that the kernels of one line take; smaller ones gain little"),
        Option("idle", 50, "%", "of the multiprocessors (AMD: compute units) without a block"),
        Option("long", 20_000, "ns", "a launch; below that starting and ending are most of it, whatever the grid"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        grids = case.tree.exclusive("grid_blocks")
        kernels = recorded_kernels(case, grids.count, "the grids of kernels")
        sizes = {_units(one.detail.get("multiprocessors")) for one in case.profile.devices}
        if len(sizes) != 1 or 0 in sizes:
            raise CannotTell("the number of multiprocessors of the devices is unknown or differs")
        units = sizes.pop()
        times = case.tree.exclusive("gpu_time")
        idle = 1 - grids.max / units  # a kernel counts by its largest launch
        wrong = kernels & (idle >= values["idle"]) & (times.sum >= values["long"] * np.maximum(times.count, 1))
        word = "compute units" if is_amd(case.profile.devices) else "multiprocessors"
        made = []
        for hot in hot_kernels(case, wrong, idle, values["share"]):
            group, row = hot.group, hot.row
            blocks = int(grids.max[row])
            each = int(times.sum[row]) / max(int(times.count[row]), 1)
            few = f"{blocks} block{'' if blocks == 1 else 's'} for {units} {word}"
            made.append(
                Finding(
                    self.name,
                    Severity.INFO,
                    f"{few} in kernels of {percent(hot.share)} of the device time",
                    case.gain(hot.unused_ns, (0, 0.3, 1), f"bound: the share of {word} that have no block"),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (
                        f"{kernel(case.name(row))}, {duration(each)} a launch",
                        f"{percent(hot.unused)} of the {word} have none of its blocks; other streams may use them",
                    ),
                    "Give it more to do at once: a larger batch, several of these calls in one, a sum that is split "
                    "(split-K, a smaller block in Triton), or other work at the same time on its own stream.",
                    self.learn_more,
                    hot.share * hot.unused,
                )
            )
        return made[:2]


def _units(told: object) -> int:
    return told if isinstance(told, int) and told > 0 else 0
