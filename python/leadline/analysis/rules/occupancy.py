"""`occupancy`: a hot kernel waits, and too few warps can be on a multiprocessor to do something else meanwhile."""

from __future__ import annotations

import numpy as np

from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.instruction_samples import SampledKernel, SampledKernels
from leadline.units import duration, percent

_REMEDIES = {
    "registers": "Let each thread hold less: __launch_bounds__ or a smaller tile (Triton: more num_warps for the same "
    "tile, fewer num_stages), or split the kernel.",
    "shared memory": "Use less shared memory for each block: a smaller tile, fewer stages of the pipeline "
    "(Triton: num_stages).",
    "block size": "Choose a block size that divides the threads of a multiprocessor: 128 or 256.",
    "grid": "There are fewer blocks than the device has room for: give each block less work (smaller "
    "tiles, split-K), or do several such launches at once.",
}
_LEAVES = {
    "registers": "registers limit it to",
    "shared memory": "shared memory limits it to",
    "block size": "block size limits it to",
    "grid": "grid limits it to",
}


class Occupancy(Rule):
    name = "occupancy"
    asks = "Does a kernel wait because its occupancy is low, and what limits it?"
    options = (
        Option("share", 5, "%", "of the device time that the kernel takes"),
        Option("occupancy", 35, "%", "below it; many kernels hide their waits with half of the warps"),
        Option("latency", 50, "%", "of its samples in which nothing was issued though no unit was busy"),
        Option("busy", 20, "%", "of its samples wait for a busy unit, or are of matrix instructions: with few "
               "warps, one in five keeps a unit busy, and matrix products are designed so"),
        Option("samples", 100, "1", "of one kernel"),
    )  # fmt: skip

    def check(self, case: Case, values: Values) -> list[Finding]:
        kernels = SampledKernels(case)
        made = []
        for kernel in kernels.hot(values["share"], values["samples"]):
            idle = kernel.short_of_warps
            if not kernel.has_latency or idle < values["latency"] or kernel.busy >= values["busy"]:
                continue
            possible = _mean(case, "occupancy", kernel) / 1e6
            waves = _mean(case, "waves", kernel) / 1e3
            reached = possible * min(waves, 1.0)
            if not 0 < reached < values["occupancy"]:
                continue
            limit = "grid" if waves < 1 else _limit(case, kernel)
            group = kernel.group
            registers, threads = _mean(case, "registers", kernel), _mean(case, "block_threads", kernel)
            shared = _mean(case, "static_shared_bytes", kernel) + _mean(case, "dynamic_shared_bytes", kernel)
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"{case.name(group.row)} issues nothing in {percent(idle)} of its samples, and its "
                    f"{_LEAVES[limit]} {percent(reached)} of the warps that the device can hold",
                    case.gain(group.value, (0, 0.3 * idle, idle), "bound: the kernel without those waits"),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (
                        f"{duration(case.per_step(group.value))} a step, {percent(kernel.share)} of the device time",
                        f"{registers:.0f} registers a thread, {threads:.0f} threads and {shared:.0f} bytes of shared "
                        f"memory a block, {waves:.2g} waves",
                    ),
                    _REMEDIES[limit],
                    self.learn_more,
                    kernel.share * idle,
                )
            )
        return made


def _mean(case: Case, metric: str, kernel: SampledKernel) -> float:
    """Over all launches."""
    found = case.tree.exclusive(metric)
    rows = kernel.group.rows
    return float(found.sum[rows].sum()) / max(int(found.count[rows].sum()), 1)


def _limit(case: Case, kernel: SampledKernel) -> str:
    """What of a launch takes the largest part of a multiprocessor, and so leaves no room for another block."""
    table = case.tree.tables["metrics"]
    here = np.isin(table["node"], kernel.group.rows)
    rows = table["device"][here]
    known = [device for device in case.profile.devices if device.row in rows.tolist()]
    detail = known[0].detail if known else {}
    threads = _mean(case, "block_threads", kernel)
    shared = _mean(case, "static_shared_bytes", kernel) + _mean(case, "dynamic_shared_bytes", kernel)
    limits = {
        "registers": _mean(case, "registers", kernel)
        * threads
        / _number(detail, "registers_per_multiprocessor", 65536),
        "shared memory": shared / _number(detail, "shared_bytes_per_multiprocessor", 102400),
        "block size": max(
            threads / _number(detail, "max_threads_per_multiprocessor", 2048),
            1 / _number(detail, "max_blocks_per_multiprocessor", 32),
        ),
    }
    return max(limits, key=lambda name: limits[name])


def _number(detail: dict[str, object], name: str, otherwise: float) -> float:
    value = detail.get(name)
    return float(value) if isinstance(value, int | float) and value > 0 else otherwise
