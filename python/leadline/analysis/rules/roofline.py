"""`roofline`: a hot kernel is far from what the device's memory and its arithmetic can do (Williams et al. 2009)."""

from __future__ import annotations

import numpy as np

from leadline.analysis.case import Group
from leadline.analysis.flops import FlopColumns, flop_columns
from leadline.analysis.hardware import Hardware, hardware_of
from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.hardware.gpus import Gpu, find_gpu
from leadline.schema import FrameKind
from leadline.units import duration, percent

_GRID = (
    "Too few blocks for the device: give each block less work (smaller tiles, split-K), use larger batches, or run "
    "several such launches at once."
)
_ROOM = (
    "Few warps fit: use smaller tiles or fewer registers (see the rule `occupancy`), so that one runs while another "
    "waits."
)
_WAITS = (
    "Enough warps run, but they wait: `leadline run --instructions` shows on which line and for what. More "
    "independent work in each thread, or fusing the kernel with its neighbours, shortens the waits."
)
_CACHE = (
    "Data comes from the L2 cache faster than from memory: larger tiles in shared memory, or a layout in which "
    "neighbouring threads use neighbouring elements."
)


class Roofline(Rule):
    name = "roofline"
    asks = "Is a kernel that takes much of the device's time far from what memory and arithmetic units can do?"
    options = (
        Option("share", 5, "%", "of the device time that the kernel takes"),
        Option("reached", 40, "%", "of the nearest roof; below this it is far. Well-made kernels reach 60 to 90 %"),
        Option("counted", 100_000, "ns", "of the kernel, in which counters were read; less is too short to judge"),
    )  # fmt: skip

    def check(self, case: Case, values: Values) -> list[Finding]:
        tree = case.tree
        if not tree.exclusive("counted_time").count.any():
            raise CannotTell("no hardware counters were read (leadline run --gpu-metrics all)")
        kernels = (tree.kinds == int(FrameKind.KERNEL)) & case.loop.inside & (case.gpu_time > 0)
        flops = flop_columns(tree)
        made = []
        for group in case.grouped(kernels, case.gpu_time, tree.frames["name"][tree.frame_of].astype(np.int64)):
            share = group.value / max(case.cost_of_all, 1)
            if share < values["share"]:
                break
            found = hardware_of(tree, group.rows, case.name(group.row))
            if found is None or found.counted_ns < values["counted"]:
                continue
            gpu = _gpu(case, group)
            roofs = _roofs(found, gpu, _rate(flops, group, gpu))
            if "memory" not in roofs or len(roofs) < 2 or max(roofs.values()) >= values["reached"]:
                continue
            nearest = max(roofs, key=lambda name: roofs[name])
            away = 1 - roofs[nearest]
            said = " and ".join(f"{percent(part)} of {_NAMES[name]}" for name, part in roofs.items())
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"{case.name(group.row)} is far from both roofs: it reaches {said}",
                    case.gain(group.value, (0, 0.4 * away, away), f"bound: at the rate of {_NAMES[nearest]}"),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (
                        f"{duration(case.per_step(group.value))} a step, {percent(share)} of the device time, counted "
                        f"for {duration(found.counted_ns)} of it",
                        *_evidence(found),
                    ),
                    _remedy(found),
                    self.learn_more,
                    share * away,
                )
            )
        return made


_NAMES = {
    "memory": "the device memory's rate",
    "matrix": "its matrix units' rate",
    "issue": "its issue slots",
    "arithmetic": "the peak of its precision",
}


def _roofs(found: Hardware, gpu: Gpu | None, arithmetic: float | None) -> dict[str, float]:
    """How near each roof is; without those that were not counted. Bytes tell of memory where its share was not, by the
    table of peaks. Matrix units that a kernel leaves alone are no roof of its own."""
    roofs = {}
    if found.dram is not None:
        roofs["memory"] = found.dram
    elif found.dram_bytes_s is not None and gpu is not None:
        roofs["memory"] = found.dram_bytes_s / gpu.memory_bytes_s
    if found.tensor:
        roofs["matrix"] = found.tensor
    if found.issue is not None:
        roofs["issue"] = found.issue
    if arithmetic is not None:
        roofs["arithmetic"] = arithmetic
    return roofs


def _rate(flops: FlopColumns, group: Group, gpu: Gpu | None) -> float | None:
    """Of the device's peak, by operations from shapes of the operators that launched these kernels and no others."""
    if gpu is None or not flops.known:
        return None
    owners = np.unique(flops.owner[group.rows])
    if not len(owners) or owners[0] < 0 or group.value <= 0:
        return None
    peaks = [gpu.peak_flops(flops.precision[owner]) for owner in owners.tolist()]
    if not all(peaks):
        return None
    done = sum(
        float(flops.per_call[owner] * flops.calls[owner]) / peak
        for owner, peak in zip(owners.tolist(), peaks, strict=True)
        if peak
    )
    return done / (group.value / 1e9)


def _gpu(case: Case, group: Group) -> Gpu | None:
    table = case.tree.tables["metrics"]
    rows = set(table["device"][np.isin(table["node"], group.rows)].tolist())
    names = [device.name for device in case.profile.devices if device.row in rows and device.name]
    return find_gpu(names[0]) if names else None


def _evidence(found: Hardware) -> list[str]:
    words = {
        "occupancy": "of the room for warps taken",
        "active": "of the multiprocessors at work",
        "l2": "of the L2 cache's rate",
    }
    said = [f"{percent(value)} {word}" for name, word in words.items() if (value := getattr(found, name)) is not None]
    if found.dram_bytes_s is not None:
        said.append(f"{found.dram_bytes_s / 1e9:,.0f} GB/s from and to device memory")
    return [", ".join(said)] if said else []


def _remedy(found: Hardware) -> str:
    if found.active is not None and found.active < 0.6:
        return _GRID
    if found.l2 is not None and found.l2 >= 0.6:
        return _CACHE
    if found.occupancy is not None and found.occupancy < 0.25:
        return _ROOM
    return _WAITS
