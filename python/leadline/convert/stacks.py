"""What the exporters share: frames as text, values per node and a traversal that no depth of stack can exhaust.

Values are clipped at zero and rolled up here, so that every format sees a parent at least as large as its children
together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np

from leadline._dataclass import dataclass
from leadline.convert.request import TooLargeError, UnknownMetricError
from leadline.profiles import Profile, Tree
from leadline.profiles.tree import present_name
from leadline.schema import FrameKind, MetricInfo

UNNAMED = "(unnamed)"


@dataclass(frozen=True)
class FrameText:
    """One row of the frames table as foreign formats show it. `line` and `first_line` are 0 where unknown."""

    kind: str
    label: str
    file: str
    line: int
    first_line: int


def frame_texts(tree: Tree) -> list[FrameText]:
    """A text per row of the frames table. Foreign viewers know no kinds, so modules, phases and regions say what they
    are.
    """
    columns = {name: tree.frames[name].tolist() for name in ("kind", "name", "file", "line", "first_line", "module")}
    text = tree.tables.strings
    made = []
    for kind, name, file, line, first, module in zip(*columns.values(), strict=True):
        label = _label(FrameKind(kind), text[name], text[module])
        made.append(FrameText(str(FrameKind(kind)), label or UNNAMED, text[file], max(line, 0), max(first, 0)))
    return made


def _label(kind: FrameKind, name: str, module: str) -> str:
    if kind == FrameKind.MODULE:
        return f"{name} [{module}]" if module else name
    if kind in (FrameKind.PHASE, FrameKind.REGION):
        return f"{kind}: {name}"
    return name


def additive_metrics(tree: Tree) -> list[MetricInfo]:
    """Metrics of this profile that a flame graph can be drawn of."""
    return [info for info in tree.measured if info.additive]


def chosen_metrics(tree: Tree, metric: str | None, unit: str | None = None) -> list[MetricInfo]:
    """The metric asked for, or all additive ones; `unit` leaves only those of that unit. Raises UnknownMetricError."""
    known = [info for info in additive_metrics(tree) if unit is None or info.unit == unit]
    if metric is None:
        return known
    found = [info for info in known if str(info.kind) == present_name(metric)]
    if not found:
        what = f"metric {metric!r} that this format can hold"
        names = ", ".join(str(info.kind) for info in known) or "none"
        raise UnknownMetricError(f"This profile has no {what}; it has {names}.")
    return found


def main_metric(metrics: list[MetricInfo]) -> MetricInfo | None:
    """The one to show where a format holds one: device time where there is some, else time, else the first."""
    by_name = {str(info.kind): info for info in metrics}
    return by_name.get("gpu_time") or by_name.get("time") or next(iter(metrics), None)


class Weights:
    """One metric over a tree: `own` per node, `whole` with the subtree; plain lists, because each is read node by
    node. Of memory at the peak that of the process and device with most: other viewers add up whatever they are given.
    """

    def __init__(self, tree: Tree, metric: MetricInfo) -> None:
        self.metric = metric
        self._tree = tree
        self.own: list[int] = np.maximum(tree.drawn(metric.kind), 0).tolist()

    @cached_property
    def whole(self) -> list[int]:
        whole = list(self.own)
        parent = self._tree.parent.tolist()
        for row in range(len(whole) - 1, 0, -1):
            whole[parent[row]] += whole[row]
        return whole


def check_size_of_paths(tree: Tree, measured: Iterable[bool], size_of_frame: Sequence[int], limit: int) -> None:
    """Raises TooLargeError where the paths of the `measured` nodes, every frame of them counted with its size, exceed
    `limit`: a file of a few kilobytes can hold one path so deep that writing it out again and again fills the memory.
    """
    parent, frame_of = tree.parent.tolist(), tree.frame_of.tolist()
    path, total = [0] * len(parent), 0
    for row, counts in enumerate(measured):
        path[row] = (path[parent[row]] if row else 0) + size_of_frame[frame_of[row]]
        total += path[row] if counts else 0
    if total > limit:
        raise TooLargeError(
            "This format repeats every call path in full and the paths of this profile are too deep for that; "
            "export speedscope or cpuprofile, which share them."
        )


def children_lists(tree: Tree) -> list[list[int]]:
    """Children of every node in row order."""
    offsets = tree.shape.child_offsets.tolist()
    rows = tree.shape.by_parent.tolist()
    return [rows[offsets[i] : offsets[i + 1]] for i in range(len(tree))]


def enter_and_leave(root: int, children: list[list[int]], worth: list[int]) -> Iterator[tuple[int, bool]]:
    """Depth first: (row, True) on the way in, (row, False) on the way out; subtrees worth nothing are left out."""
    stack = [(root, False)]
    while stack:
        row, leaving = stack.pop()
        if leaving:
            yield row, False
            continue
        if worth[row] <= 0:
            continue
        yield row, True
        stack.append((row, True))
        stack.extend((child, False) for child in reversed(children[row]))


def json_bytes(value: object) -> bytes:
    """Compact pure-ASCII JSON, lone surrogates included, with a newline at the end."""
    return (json.dumps(value, separators=(",", ":"), allow_nan=False) + "\n").encode("ascii")


def profile_name(profile: Profile) -> str:
    """The program as one line, for a title."""
    program = profile.meta.get("program")
    argv = program.get("argv") if isinstance(program, dict) else None
    if isinstance(argv, list) and argv:
        return " ".join(str(one) for one in argv)
    return next((process.name for process in profile.processes), "") or "leadline"
