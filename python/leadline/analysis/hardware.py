"""What hardware counters said of the kernels below any node: shares of what the device can do, and bytes a second.

Shares are kept as time (see schema/leadline.toml), so those of a line, a module or a whole run are sums divided by the
time in which counters were read, which is a part of the time that kernels ran.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.columns import Mask, Rows
from leadline.profiles import Tree
from leadline.schema import FrameKind

SHARES: Mapping[str, str] = {
    "occupancy": "occupied_time",
    "active": "active_time",
    "issue": "issue_time",
    "tensor": "tensor_time",
    "dram": "dram_time",
    "l2": "l2_time",
}
"""What a row says to the metric that it is kept in."""


@dataclass(frozen=True)
class Hardware:
    """Shares are 0 to 1, None where they were not counted. `counted_ns`: the part of `gpu_ns` that they stand for.
    `active`: of the multiprocessors that had work; `occupancy`: of the room for warps on those; `dram_bytes_s`: what
    device memory moved; `instructions_s`: of warps; `conflicts`: share of shared memory's turns that its banks'
    conflicts added; `sectors`: of 32 bytes that a load of global memory touched, of the 32 threads of a warp."""

    name: str
    gpu_ns: int
    counted_ns: int
    occupancy: float | None
    active: float | None
    issue: float | None
    tensor: float | None
    dram: float | None
    l2: float | None
    dram_bytes_s: float | None
    instructions_s: float | None
    conflicts: float | None
    sectors: float | None


def hardware_of(tree: Tree, rows: Rows, name: str) -> Hardware | None:
    """Of these nodes alone, without those below them; None where no counter was read there."""

    def total(metric: str) -> tuple[int, int]:
        found = tree.exclusive(metric)
        return int(found.sum[rows].sum()), int(found.count[rows].sum())

    counted, _ = total("counted_time")
    if counted <= 0:
        return None

    def per_counted(metric: str) -> float | None:
        value, count = total(metric)
        return value / counted if count else None

    def a_second(metric: str) -> float | None:
        value = per_counted(metric)
        return None if value is None else value * 1e9

    def ratio(metric: str, to: str) -> float | None:
        (value, count), (whole, _) = total(metric), total(to)
        return value / whole if count and whole else None

    shares = {share: per_counted(metric) for share, metric in SHARES.items()}
    bytes_s, instructions_s = a_second("dram_bytes"), a_second("warp_instructions")
    return Hardware(
        name,
        total("gpu_time")[0],
        counted,
        **shares,
        dram_bytes_s=bytes_s,
        instructions_s=instructions_s,
        conflicts=ratio("bank_conflicts", "shared_wavefronts"),
        sectors=ratio("global_sectors", "global_requests"),
    )


def by_kernel(tree: Tree, kept: Mask | None = None) -> list[Hardware]:
    """Of all launches of kernels of one name, the most device time first."""
    counted = tree.exclusive("counted_time").sum > 0
    wanted = np.isin(tree.kinds, (int(FrameKind.KERNEL), int(FrameKind.COLLECTIVE)))
    wanted &= np.ones(len(tree), np.bool_) if kept is None else kept
    names = tree.frames["name"][tree.frame_of]
    made = []
    for name in np.unique(names[counted & wanted]).tolist():
        rows = np.flatnonzero(wanted & (names == name))
        if one := hardware_of(tree, rows, tree.tables.strings[name]):
            made.append(one)
    return sorted(made, key=lambda one: (-one.gpu_ns, one.name))
