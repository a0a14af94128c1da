"""The hottest call paths: measurements grouped under the user's line, the phase, the module and the outermost operator.

A transformer has the same path once per layer; entries whose modules differ only in layer numbers are one entry
(`transformer.h.*.attn`), or the list would show one line twelve times.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from leadline.profile import Tree
from leadline.report.model import FrameLine, HotPath, Place
from leadline.report.scopes import Scopes
from leadline.report.source import is_library, short_names
from leadline.schema import FrameKind

_LAYER_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")

_Key = tuple[tuple[int, int, int], str, str, str]


def merged_layers(module: str) -> str:
    """`transformer.h.3.attn` as `transformer.h.*.attn`."""
    return _LAYER_NUMBER.sub("*", module)


@dataclass
class _Group:
    values: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    rows: set[int] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    largest: int = 0
    largest_row: int = -1


class HotPaths:
    """Ranks the paths of one tree; files are shown relative to the folder `base` where they lie below it."""

    def __init__(
        self, tree: Tree, scopes: Scopes, kept: NDArray[np.bool_], hide_library_frames: bool, base: str
    ) -> None:
        self._tree = tree
        self._scopes = scopes
        self._kept = kept
        self._hide = hide_library_frames
        strings = tree.tables.strings
        python = tree.frames["kind"] == int(FrameKind.PYTHON)
        self._short = short_names((strings[row] for row in set(tree.frames["file"][python].tolist())), base)

    def ranked(self, metric: str, also: Iterable[str] = (), device: int | None = None) -> list[HotPath]:
        """All entries with some of `metric`, the largest first. `also`: further additive metrics to sum over each
        entry.
        """
        groups = self._groups(metric, device)
        chosen = sorted(groups.items(), key=lambda item: (-item[1].values[metric], item[1].largest_row))
        for other in also:
            if other != metric:
                self._add(groups, other, device)
        calls = self._tree.exclusive("call_time").count
        return [self._entry(key, group, calls) for key, group in chosen]

    def _groups(self, metric: str, device: int | None) -> dict[_Key, _Group]:
        groups: dict[_Key, _Group] = {}
        sums = self._tree.exclusive(metric, device).sum
        for row in np.flatnonzero((sums > 0) & self._kept).tolist():
            group = groups.setdefault(self._key(row), _Group())
            value = int(sums[row])
            group.values[metric] += value
            group.rows.add(row)
            module = int(self._scopes.module[row])
            if module >= 0:
                group.modules.add(self._name(module))
            if value > group.largest:
                group.largest, group.largest_row = value, row
        return groups

    def _add(self, groups: dict[_Key, _Group], metric: str, device: int | None) -> None:
        sums = self._tree.exclusive(metric, device).sum
        for row in np.flatnonzero((sums != 0) & self._kept).tolist():
            group = groups.get(self._key(row))
            if group is not None:
                group.values[metric] += int(sums[row])

    def _key(self, row: int) -> _Key:
        scopes, tree = self._scopes, self._tree
        user = int(scopes.user[row])
        place = (-1, -1, -1)
        if user >= 0:
            frame = int(tree.frame_of[user])
            place = (int(tree.frames["file"][frame]), int(tree.frames["line"][frame]), int(tree.frames["name"][frame]))
        module, phase, outer = int(scopes.module[row]), int(scopes.phase[row]), int(scopes.outer[row])
        return (
            place,
            merged_layers(self._name(module)) if module >= 0 else "",
            self._name(phase) if phase >= 0 else "",
            self._name(outer) if outer >= 0 else "",
        )

    def _name(self, row: int) -> str:
        return self._tree.text("name", int(self._tree.frame_of[row]))

    def _entry(self, key: _Key, group: _Group, calls: NDArray[np.int64]) -> HotPath:
        _, pattern, phase, operator = key
        tree, scopes = self._tree, self._scopes
        row = group.largest_row
        module_row, outer = int(scopes.module[row]), int(scopes.outer[row])
        outers = {int(scopes.outer[one]) for one in group.rows} - {-1}
        return HotPath(
            place=self.place(row),
            module=pattern if len(group.modules) > 1 else next(iter(group.modules), ""),
            module_class=tree.text("module", int(tree.frame_of[module_row])) if module_row >= 0 else "",
            modules=len(group.modules),
            phase=phase,
            operator=operator,
            calls=sum(int(calls[one]) for one in outers),
            paths=len(group.rows),
            values=dict(group.values),
            frames=self.frames(row),
            node=outer if outer >= 0 else row,
        )

    def place(self, row: int) -> Place | None:
        """The user's line of a node, or None where no Python frame is above it."""
        user = int(self._scopes.user[row])
        if user < 0:
            return None
        frame = int(self._tree.frame_of[user])
        file = self._tree.text("file", frame)
        name = self._tree.text("name", frame)
        function = "" if name == "<module>" else name
        return Place(file, self._short[file], int(self._tree.frames["line"][frame]), function)

    def frames(self, row: int) -> tuple[FrameLine, ...]:
        """The path to a node below the root, without library frames where the user asked for that."""
        nodes = (self._tree.node(one) for one in self._tree.path_rows(row)[1:])
        lines = (
            FrameLine(node.kind, node.name, node.file, node.line, self._short.get(node.file, ""), node.module)
            for node in nodes
        )
        return tuple(line for line in lines if not (self._hide and line.kind == "python" and is_library(line.file)))
