"""Edges inside of compiled code: which kernel of a `torch.compile` graph waited for which other.

The process recorded the graphs of the code that it ran (`graphs` of torch.compile). A run of one is an operator that
has just the graph's calls inside, in their order; where two graphs would fit and differ, there are no edges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.schema import EventKind

Numbers = NDArray[np.int64]
_RUNS = ("CompiledFunction", "Torch-Compiled Region", "CompiledFunctionBackward")
_MOST_INSIDE = 20_000


def compiled_edges(
    events: Mapping[str, NDArray[Any]], rows: Numbers, names: NDArray[Any], graphs: Sequence[Mapping[str, Any]]
) -> list[tuple[int, int]]:
    """(source, target) rows of events. `rows`: those of one process in order of time, `names`: theirs."""
    start = events["start_ns"][rows].astype(np.int64)
    end = start + np.maximum(events["duration_ns"][rows], 0)
    thread = events["thread"][rows]
    spans = np.isin(events["kind"][rows], [EventKind.OPERATOR, EventKind.REGION])
    wanted = [(_plain(graph.get("calls")), graph.get("edges") or []) for graph in graphs]
    known = {name for calls, _ in wanted for name in calls}
    found: list[tuple[int, int]] = []
    runs = [at for at, name in enumerate(names.tolist()) if spans[at] and str(name).startswith(_RUNS)]
    for place, at in enumerate(runs):
        if any(runs[inner] != at and start[runs[inner]] < end[at] and thread[runs[inner]] == thread[at]
               for inner in range(place + 1, min(place + 3, len(runs)))):  # fmt: skip
            continue  # an operator around another of them
        last = min(int(np.searchsorted(start, end[at])), at + _MOST_INSIDE)
        inside = [
            one for one in range(at + 1, last) if thread[one] == thread[at] and spans[one] and end[one] <= end[at]
        ]
        listed = _outermost(inside, start, end, names, known)
        called = [_word(str(names[one])) for one in listed]
        edges = [pairs for calls, pairs in wanted if calls == called]
        if edges and all(one == edges[0] for one in edges):
            flat = edges[0]
            pairs = zip(flat[::2], flat[1::2], strict=True)
            found += [(int(rows[listed[one]]), int(rows[listed[other]])) for one, other in pairs]
    return found


def _outermost(inside: list[int], start: Numbers, end: Numbers, names: NDArray[Any], known: set[str]) -> list[int]:
    """Events of known names that are in no other of these."""
    found: list[int] = []
    until = -1
    for one in inside:
        if start[one] >= until and _word(str(names[one])) in known:
            found.append(one)
            until = int(end[one])
    return found


def _plain(calls: Any) -> list[str]:
    return [_word(str(one)) for one in calls] if isinstance(calls, list) else []


def _word(name: str) -> str:
    return name.removeprefix("aten::").rstrip("_")
