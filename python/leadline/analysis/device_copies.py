"""Copies between the devices of a program, by the pair of devices and what joins them.

Of copies alone: what collectives move between devices, they move in kernels, which say no bytes of links.
"""

from __future__ import annotations

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.columns import Mask
from leadline.profiles import Profile
from leadline.schema import FrameKind, MetricKind
from leadline.trace.links import links_of


@dataclass(frozen=True)
class LinkRow:
    """Of one process, from device `source` to `target`, by the program's numbers. `link`: what joins them, empty where
    it is not told; `link_bytes_s`: its rate, None likewise; `ns`: sum of the copies' times."""

    process: int
    source: int
    target: int
    link: str
    copies: int
    bytes: int
    ns: int
    link_bytes_s: float | None

    @property
    def bytes_s(self) -> float:
        """What a copy reached, as the mean over all of them; 0 without time."""
        return self.bytes / self.ns * 1e9 if self.ns > 0 else 0.0


def between_devices(profile: Profile, kept: Mask | None = None) -> list[LinkRow]:
    """The most bytes first; nothing where no copy said between which devices it was."""
    tree = profile.tree
    wanted = (tree.kinds == int(FrameKind.COPY)) & (np.ones(len(tree), np.bool_) if kept is None else kept)
    pairs = {frame: pair for frame in np.unique(tree.frame_of[wanted]).tolist() if (pair := _pair(profile, frame))}
    if not pairs:
        return []
    devices = {one.row: one for one in profile.devices}
    rates = {
        (one.process, one.index, link.device): link.bytes_s for one in devices.values() for link in links_of(one.detail)
    }
    sums: dict[tuple[int, int, int, str], list[int]] = {}
    metrics = tree.tables["metrics"]
    for kind, at in ((MetricKind.GPU_TIME, 2), (MetricKind.COPY_BYTES, 1)):
        rows = np.flatnonzero((metrics["metric"] == int(kind)) & (metrics["count"] > 0))
        rows = rows[wanted[metrics["node"][rows]]]
        frames, on = tree.frame_of[metrics["node"][rows]].tolist(), metrics["device"][rows].tolist()
        values = zip(frames, on, metrics["sum"][rows].tolist(), metrics["count"][rows].tolist(), strict=True)
        for frame, row, total, count in values:
            if frame in pairs and row in devices:
                found = sums.setdefault((devices[row].process, *pairs[frame]), [0, 0, 0])
                found[at] += total
                found[0] += count if at == 2 else 0
    made = [
        LinkRow(*key, copies, total, ns, rates.get((key[0], key[1], key[2])) or None)
        for key, (copies, total, ns) in sums.items()
    ]
    return sorted(made, key=lambda row: (-row.bytes, row.process, row.source, row.target))


def _pair(profile: Profile, frame: int) -> tuple[int, int, str] | None:
    detail = profile.tree.node(int(np.flatnonzero(profile.tree.frame_of == frame)[0])).detail
    source, target, link = detail.get("from"), detail.get("to"), detail.get("link", "")
    return (
        (source, target, link)
        if isinstance(source, int) and isinstance(target, int) and isinstance(link, str)
        else None
    )
