"""Edges after tasks have gone: what depended on a removed task depends on what that depended on (Daydream 4.4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leadline.whatif.columns import ColumnTable
from leadline.whatif.kinds import BoolArray, EdgeType

_FROM_START = (int(EdgeType.LAUNCH), int(EdgeType.START))


def restitched(
    edges: ColumnTable, gone: BoolArray, before: NDArray[np.int64], behind: NDArray[np.int64]
) -> ColumnTable:
    """The edge table without the tasks in `gone`.

    `before` and `behind` hold for every removed task the nearest remaining tasks on its lane, -1 for none. The one
    behind takes over what the removed task waited for, except synchronisations: a call that is gone waits for nothing.
    Latencies add up along the removed tasks. A launch edge into removed device work ends there: the launch launches
    nothing. Device work whose launch is removed but which stays is launched by the remaining task before that launch.
    """
    src, dst, kind, latency = (edges[name] for name in ("src", "dst", "type", "latency_ns"))
    touched = gone[src] | gone[dst]
    if not touched.any():
        return edges
    into: dict[int, list[tuple[int, int, int]]] = {}
    out: list[tuple[int, int, int, int]] = []
    for source, target, edge_type, delay in zip(
        src[touched].tolist(), dst[touched].tolist(), kind[touched].tolist(), latency[touched].tolist(), strict=True
    ):
        if gone[target] and edge_type != EdgeType.LAUNCH:
            into.setdefault(target, []).append((source, edge_type, delay))
        if gone[source] and not gone[target]:
            out.append((source, target, edge_type, delay))
    roots: dict[int, list[tuple[int, int, int]]] = {}
    added: dict[tuple[int, int, int], int] = {}
    for removed, target, edge_type, delay in out:
        for source, source_type, source_delay in _remaining(removed, gone, before, into, roots):
            if edge_type == EdgeType.LAUNCH:
                new_type = int(EdgeType.LAUNCH)
            else:
                new_type = source_type if source_type in _FROM_START else edge_type
            if source != target:
                key = (source, target, new_type)
                added[key] = max(added.get(key, 0), delay + source_delay)
    for removed, sources in into.items():
        target = int(behind[removed])
        for source, edge_type, delay in sources if target >= 0 else ():
            if edge_type != EdgeType.SYNC and not gone[source] and source != target:
                key = (source, target, edge_type)
                added[key] = max(added.get(key, 0), delay)
    result = edges.copy()
    result.keep(~touched)
    if added:
        rows = np.array([(*key, delay) for key, delay in added.items()], dtype=np.int64)
        result.append(src=rows[:, 0], dst=rows[:, 1], type=rows[:, 2], latency_ns=rows[:, 3])
    return result


def _remaining(
    removed: int,
    gone: BoolArray,
    before: NDArray[np.int64],
    into: dict[int, list[tuple[int, int, int]]],
    known: dict[int, list[tuple[int, int, int]]],
) -> list[tuple[int, int, int]]:
    """(source, type, latency) of the remaining tasks that `removed` waited for, through any chain of removed ones."""
    if removed in known:
        return known[removed]
    best: dict[tuple[int, int], int] = {}
    seen: dict[int, int] = {removed: 0}
    pending = [removed]
    while pending:
        at = pending.pop()
        if before[at] >= 0:
            key = (int(before[at]), int(EdgeType.DEPENDENCY))
            best[key] = max(best.get(key, 0), seen[at])
        for source, edge_type, delay in into.get(at, ()):
            total = seen[at] + delay
            if not gone[source]:
                best[(source, edge_type)] = max(best.get((source, edge_type), 0), total)
            elif seen.get(source, -1) < total:
                seen[source] = total
                pending.append(source)
    known[removed] = [(source, edge_type, delay) for (source, edge_type), delay in best.items()]
    return known[removed]
