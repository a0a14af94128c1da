"""Hot paths in words: the user's line with its short file, names of module and operator, the frames of the path."""

from __future__ import annotations

import re

import numpy as np

from leadline.analysis import Analysis
from leadline.analysis.functions import IMPORTLIB
from leadline.analysis.hotpaths import Entry, functions_below_line
from leadline.analysis.layers import merged_layers
from leadline.analysis.origin import is_dispatch, is_library
from leadline.analysis.rows import FunctionRow
from leadline.analysis.sampled import present, says_something
from leadline.report.model import FrameLine, FunctionTime, HotPath, Place
from leadline.report.source import short_names
from leadline.schema import FrameKind

_ABI_TAG = re.compile(r"\.cpython-[^.]*|\.abi3")
MOST_FRAMES = 200
"""Innermost frames of a path that are shown; a tree from someone else may be a million levels deep."""
MOST_TEXT = 1 << 28
"""Characters that the frames of all paths together may need."""
CUT = "cut"
"""Kind of the line that stands for frames left out."""


def _is_hidden(line: FrameLine) -> bool:
    """With `--hide-library-frames`."""
    return (line.kind == "python" and is_library(line.file)) or (line.kind == "native" and is_dispatch(line.name))


class TooLargeError(ValueError):
    """The frames of the paths asked for would fill the memory; the message says what to do."""


class PathWords:
    """Names of one profile's paths; files are shown relative to the folder `base` where they lie below it."""

    def __init__(self, analysis: Analysis, base: str, hide_library_frames: bool = False, frames: bool = True) -> None:
        self._tree = analysis.tree
        self._scopes = analysis.scopes
        self._hide = hide_library_frames
        self._with_frames = frames
        self._lines: dict[int, FrameLine] = {}
        self._text = 0
        strings = self._tree.tables.strings
        python = self._tree.frames["kind"] == int(FrameKind.PYTHON)
        self._short = short_names((strings[row] for row in np.unique(self._tree.frames["file"][python]).tolist()), base)

    def path(self, entry: Entry) -> HotPath:
        """Raises TooLargeError where the frames of all paths so far are more than MOST_TEXT."""
        scopes, row = self._scopes, entry.row
        module, outer = int(scopes.module[row]), int(scopes.outer[row])
        names = sorted(self._name(one) for one in entry.modules)
        return HotPath(
            place=self.place(row),
            module=merged_layers(names[0]) if len(names) > 1 else next(iter(names), ""),
            module_class=self._tree.text("module", int(self._tree.frame_of[module])) if module >= 0 else "",
            modules=len(names),
            phase=self._name(int(scopes.phase[row])),
            operator=self._name(outer),
            inner=self._inner(entry.common),
            calls=entry.calls,
            paths=entry.paths,
            values=entry.values,
            frames=self.frames(row) if self._with_frames else (),
            node=outer if outer >= 0 else row,
            callers=entry.callers,
        )

    def _inner(self, row: int) -> str:
        """The innermost Python or native function at or above this node that says more than the user's line does."""
        for at in functions_below_line(self._tree, self._scopes, row):
            if self._tree.text("file", int(self._tree.frame_of[at])).startswith(IMPORTLIB):
                return "import"
            if self._name(at) != "<module>" and says_something(self._name(at)):
                return present(self._name(at))
        return ""

    def function(self, row: FunctionRow) -> FunctionTime:
        """A row of the table of functions with its file as shown."""
        short = self._short.get(row.file, row.file)
        if row.kind == str(FrameKind.NATIVE):
            short = _ABI_TAG.sub("", row.file.rpartition("/")[2])
        return FunctionTime(short=short, **vars(row))

    def place(self, row: int) -> Place | None:
        """The user's line of a node, or None where no Python frame is above it."""
        user = int(self._scopes.user[row])
        if user < 0:
            return None
        line = self._line(user)
        return Place(line.file, line.short, line.line, "" if line.name == "<module>" else line.name)

    def frames(self, row: int) -> tuple[FrameLine, ...]:
        """The path to a node below the root, without library frames where the user asked for that."""
        left = int(self._tree.shape.depth[row])
        rows: list[int] = []
        while row > 0 and len(rows) < MOST_FRAMES:
            rows.append(row)
            row = int(self._tree.parent[row])
        lines = [self._line(one) for one in reversed(rows)]
        if row > 0:
            above = [int(column[row]) for column in (self._scopes.process, self._scopes.thread)]
            heads = [self._line(one) for one in above if one >= 0 and one not in rows]
            lines = [*heads, FrameLine(CUT, f"({left - len(rows) - len(heads):,} more frames)", "", 0), *lines]
        shown = tuple(line for line in lines if not (self._hide and _is_hidden(line)))
        self._text += sum(64 + len(line.name) + 2 * len(line.file) + len(line.module) for line in shown)
        if self._text > MOST_TEXT:
            raise TooLargeError(
                "The paths of this profile are too long to write so many of them out; ask for fewer with --top."
            )
        return shown

    def _line(self, row: int) -> FrameLine:
        frame = int(self._tree.frame_of[row])
        if frame not in self._lines:
            node = self._tree.node(row)
            short = self._short.get(node.file, "")
            self._lines[frame] = FrameLine(node.kind, node.name, node.file, node.line, short, node.module)
        return self._lines[frame]

    def _name(self, row: int) -> str:
        return self._tree.text("name", int(self._tree.frame_of[row])) if row >= 0 else ""
