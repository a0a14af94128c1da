"""Memory that was held when a device's live total was largest, per process and device.

Two processes peak at different moments, so their peaks are never added: the CPU of each is a device of its own here.
"""

from __future__ import annotations

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.columns import Mask, Rows
from leadline.profiles import Tree
from leadline.schema import MetricKind


@dataclass(frozen=True)
class Peak:
    """`process`: node of the process, -1 where the tree has none. `device`: row of devices, -1 for the CPU. `held`:
    bytes alive at the moment of the peak; `nodes`: who holds them."""

    process: int
    device: int
    held: int
    nodes: Rows


def peaks_of(tree: Tree, process: Rows) -> list[Peak]:
    """Every peak, the largest first. `process`: node of the process of every node, as in `Scopes`."""
    table = tree.tables["metrics"]
    here = np.flatnonzero((table["metric"] == int(MetricKind.PEAK_LIVE_BYTES)) & (table["count"] > 0))
    if not len(here):
        return []
    node, device, held = table["node"][here].astype(np.int64), table["device"][here], table["sum"][here]
    keys, group = np.unique(np.stack((process[node], device.astype(np.int64))), axis=1, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(group.ravel()[order])) + 1)
    made = [
        Peak(int(owner), int(on), int(held[part].sum()), np.unique(node[part]))
        for (owner, on), part in zip(keys.T.tolist(), parts, strict=True)
    ]
    return sorted((peak for peak in made if peak.held > 0), key=lambda peak: (-peak.held, peak.process, peak.device))


def only(size: int, peak: Peak, kept: Mask) -> Mask:
    """Mask of the kept nodes that hold memory at that peak."""
    mask = np.zeros(size, np.bool_)
    mask[peak.nodes] = True
    return mask & kept
