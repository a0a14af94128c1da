"""Scratch memory that a driver took for queues while kernels waited for it, by kernel."""

from __future__ import annotations

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.columns import Mask
from leadline.profiles import Tree


@dataclass(frozen=True)
class ScratchRow:
    """Of all launches of kernels of one name. `thread_bytes`: what each thread needs, the most of any launch; `taken`:
    how often queues waited for it, `taken_bytes`: how much, None where the vendor's library does not say;
    `waited_ns`: how long, in all; `returned`: how often it was given back or reclaimed."""

    name: str
    thread_bytes: int
    taken: int
    taken_bytes: int | None
    waited_ns: int
    returned: int


def by_kernel(tree: Tree, kept: Mask | None = None) -> list[ScratchRow]:
    """The longest wait first; nothing where no scratch memory was taken or given back."""
    taken, freed = tree.exclusive("scratch_alloc_bytes"), tree.exclusive("scratch_free_bytes")
    waited, each = tree.exclusive("scratch_time"), tree.exclusive("scratch_bytes")
    wanted = (taken.count > 0) | (freed.count > 0)
    wanted &= np.ones(len(tree), np.bool_) if kept is None else kept
    names = tree.frames["name"][tree.frame_of]
    made = []
    for name in np.unique(names[wanted]).tolist():
        rows = np.flatnonzero(wanted & (names == name))
        total = int(taken.sum[rows].sum())
        needs = each.max[rows][each.count[rows] > 0]
        made.append(
            ScratchRow(
                tree.tables.strings[name],
                int(needs.max()) if len(needs) else 0,
                int(taken.count[rows].sum()),
                total or None,
                int(waited.sum[rows].sum()),
                int(freed.count[rows].sum()),
            )
        )
    return sorted(made, key=lambda row: (-row.waited_ns, -row.taken, row.name))
