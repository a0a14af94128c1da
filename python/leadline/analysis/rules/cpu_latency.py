"""`cpu_latency`: the device idles while the CPU works (DeepContext, analysis 5)."""

from __future__ import annotations

import numpy as np

from leadline.analysis.columns import Mask
from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.vendor import device_graph
from leadline.units import duration, percent, times


class CpuLatency(Rule):
    name = "cpu_latency"
    asks = "Does the device idle while the CPU works on one line?"
    on_cpu = True
    options = (
        Option("share", 10, "%", "of the step that the device idles for one line"),
        Option("ratio", 2, "1", "CPU time over device time; a fast line does not cause the idle time after it"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        case.need_device()
        idle = np.where(case.loop.inside, case.tree.exclusive("gpu_idle_time").sum, 0)
        if not idle.any():
            raise CannotTell("idle time of the device was not measured")
        made = []
        nowhere = case.user_line < 0
        groups = case.by_line(idle > 0, idle)
        if not groups:  # a trace without Python's frames: what is known is how long, not behind which line
            groups = case.grouped(idle > 0, idle, np.zeros(len(idle), np.int64))
        for group in groups:
            share = case.share(group.value)
            if share < values["share"]:
                break
            here = nowhere if nowhere[group.row] else case.user_line == case.user_line[group.row]
            cpu, device = int(case.time[here].sum()), int(case.gpu_time[here].sum())
            if cpu < values["ratio"] * device:
                continue
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"The device idles {percent(share)} of the step"
                    + ("" if nowhere[group.row] else " after this line"),
                    case.gain(group.value, (0, 0.5, 1), "bound: the idle time charged to this line"),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (
                        _spent(case, cpu, device),
                        *_sampled(case, here),
                    ),
                    "Let the CPU run ahead: prepare batches in workers, avoid waits for the device, give each "
                    "call more "
                    f"work, or capture the step in a {device_graph(case.profile.devices)}.",
                    self.learn_more,
                    share,
                )
            )
        return made[:2]


def _spent(case: Case, cpu_ns: int, device_ns: int) -> str:
    if not cpu_ns:
        return "this line runs no operator: it is Python, or a library without operators"
    on_cpu = f"{duration(case.per_step(cpu_ns))} on the CPU a step"
    if not device_ns:
        return f"{on_cpu} and nothing on the device"
    return f"{on_cpu} for {duration(case.per_step(device_ns))} on the device ({times(cpu_ns / device_ns)} times)"


def _sampled(case: Case, here: Mask) -> list[str]:
    """What the CPU did behind this line, outside of operators."""
    everything = max(int(case.samples[here].sum()), 1)
    below = case.below(here) & case.loop.inside
    return [
        f"the CPU was {percent(one.ns / max(everything, one.ns))} of that in {one.name}, by samples"
        for one in case.sampled(below, most=1)
    ]
