"""Module and phase spans for windows that hold none: a run of a thread's operators and calls below one module, or one
phase, becomes a span.

Files of format 1 have no module events, and no file has one for what runs below a module later than its call: backward
operators hang below their forward operator. A run ends where the module's call path, the phase or the training step
changes; two calls of one module from one line with no other module between cannot be told apart and stay one span.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.trace.tables import Kind

_WORK = (Kind.OPERATOR, Kind.API, Kind.SYNCHRONIZE)
_DEFAULTS = {"device": -1, "stream": -1, "sequence": -1, "forward_thread": -1, "awaits": -1, "detail": -1}
_SPAN_COLUMNS = ("start_ns", "duration_ns", "kind", "name", "thread", "node", "step")

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Scopes:
    """For every node of the tree the node of its innermost module and of its innermost phase, -1 for none; `name` is
    the name of every node, as a row of the trace's strings; `backward` marks nodes of which the innermost phase is
    `backward`."""

    module: NDArray[np.int64]
    phase: NDArray[np.int64]
    name: NDArray[np.int64]
    backward: NDArray[np.bool_]


def nearest(parent: NDArray[Any], wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each node the innermost wanted one on its path, itself included, or -1; parents stand before children."""
    found = np.where(wanted, np.arange(wanted.size), -1).tolist()
    for row, above in enumerate(np.asarray(parent).tolist()):
        if found[row] < 0 and above >= 0:
            found[row] = found[above]
    return np.array(found, dtype=np.int64)


def with_spans(columns: Columns, scopes: Scopes) -> Columns:
    """The events and a span for every run; not where the file has the spans itself."""
    added: list[tuple[int, ...]] = []
    work = np.isin(columns["kind"], [int(kind) for kind in _WORK])
    has_modules = bool((columns["kind"] == Kind.MODULE).any())
    # what was recorded of a phase anywhere in the process is all there is of it: a run of operators of a helper thread
    # would count it once more
    recorded = np.unique(columns["name"][columns["kind"] == Kind.PHASE])
    for thread in np.unique(columns["thread"][columns["thread"] >= 0]).tolist():
        mine = columns["thread"] == thread
        rows = np.flatnonzero(mine & work)
        rows = rows[np.argsort(columns["start_ns"][rows], kind="stable")]
        node = columns["node"][rows]
        module, phase = scopes.module[node], scopes.phase[node]
        changes = [columns["step"][rows], scopes.backward[node]]
        # what runs backward stands below the module's node, and outside its call
        late = scopes.backward[node] & (phase > module)
        if has_modules and np.any(columns["kind"][mine] == Kind.MODULE):
            added += _runs(columns, rows, np.where(late, module, -1), Kind.MODULE, changes, scopes.name)
        else:
            added += _runs(columns, rows, module, Kind.MODULE, changes, scopes.name)
        known = np.isin(scopes.name[np.maximum(phase, 0)], recorded)
        # a phase is one stretch of time of a step however many call paths it stands on, as `backward` does
        named = np.where((phase >= 0) & ~known, scopes.name[np.maximum(phase, 0)], -1)
        added += _runs(columns, rows, phase, Kind.PHASE, [columns["step"][rows]], scopes.name, named)
    if not added:
        return columns
    table = dict(zip(_SPAN_COLUMNS, np.array(added, dtype=np.int64).T, strict=True))
    return {
        name: np.concatenate((values, table.get(name, np.full(len(added), _DEFAULTS.get(name, 0)))))
        for name, values in columns.items()
    }


def _runs(
    columns: Columns,
    rows: NDArray[np.int64],
    scope: NDArray[np.int64],
    kind: Kind,
    changes: list[NDArray[Any]],
    names: NDArray[np.int64],
    group: NDArray[np.int64] | None = None,
) -> list[tuple[int, ...]]:
    """One span (`_SPAN_COLUMNS`) per run of equal `group` (by default the scope itself) that is not -1."""
    group = scope if group is None else group
    border = np.diff(group) != 0
    for change in changes:
        border |= change[1:] != change[:-1]
    end = columns["start_ns"][rows] + columns["duration_ns"][rows]
    made: list[tuple[int, ...]] = []
    for part in np.split(np.arange(rows.size), np.flatnonzero(border) + 1):
        if part.size and group[part[0]] >= 0:
            first = rows[part[0]]
            low = int(columns["start_ns"][first])
            high = int(end[part].max())
            node = int(scope[part[0]])
            thread, step = int(columns["thread"][first]), int(columns["step"][first])
            made.append((low, high - low, int(kind), int(names[node]), thread, node, step))
    return made
