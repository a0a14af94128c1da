"""What a `Case` says of the source: whose line a node stands on, which function made the call, and their text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from leadline.analysis.columns import Mask, Rows, at_rows, factorized, nearest
from leadline.analysis.findings import Line
from leadline.analysis.ofsamples import OfSamples
from leadline.analysis.origin import Origin, origin, package_path
from leadline.analysis.sampled import function_of_frame
from leadline.analysis.scopes import frame_origins
from leadline.analysis.sourcecode import Sources, short_name
from leadline.schema import FrameKind


class OfSource(OfSamples):
    """See `Case`."""

    cwd: str
    sources: Sources

    @cached_property
    def user_line(self) -> Rows:
        """For every node a number that it shares with the nodes of the same user's line; -1 where it has none."""
        columns, user = self.tree.frames, self.analysis.scopes.user
        lines = factorized(columns["file"].astype(np.int64), columns["line"].astype(np.int64))
        return at_rows(lines[self.tree.frame_of], user)

    @cached_property
    def code_line(self) -> Rows:
        """The same for the innermost line that is not the framework's: of an installed package where that makes the
        call, which one line of the user's may do in many places."""
        columns = self.tree.frames
        lines = factorized(columns["file"].astype(np.int64), columns["line"].astype(np.int64))
        return at_rows(lines[self.tree.frame_of], self.code)

    def name(self, row: int) -> str:
        """Name of a node's frame."""
        return self.tree.text("name", int(self.tree.frame_of[row])) if row >= 0 else ""

    def function(self, row: int) -> str:
        """What the user's line of a node stands in: a function's name, or the program itself."""
        line = self.line(row)
        return "" if line is None else line.function or f"The body of {line.short}"

    def made_by(self, row: int) -> str:
        """`torchdiffeq/odeint.py:12 step`: where an installed package makes a call for the user's line; empty where the
        user's own code, or nothing but the framework, does."""
        at = int(self.code[row])
        if at < 0 or (node := self.tree.node(at)).file == "" or origin(node.file) != Origin.PACKAGE:
            return ""
        return f"{package_path(node.file) or node.file}:{node.line} {node.name}"

    def code_text(self, row: int) -> str:
        """The text of the line that `made_by` names; empty where it cannot be read."""
        at = int(self.code[row])
        node = self.tree.node(at) if at >= 0 else None
        source = self.sources.of(node.file) if node is not None and node.file else None
        return source.text(node.line) if source is not None and node is not None else ""

    @cached_property
    def code(self) -> Rows:
        """The innermost Python frame above each node that is not the framework's."""
        code = (frame_origins(self.tree) >= int(Origin.PACKAGE)) & (self.tree.frames["kind"] == int(FrameKind.PYTHON))
        return nearest(self.tree.shape, code[self.tree.frame_of])

    @cached_property
    def code_function(self) -> Rows:
        """For every node a number that it shares with the nodes of the same function's own lines, whoever wrote it."""
        return at_rows(function_of_frame(self.tree)[self.tree.frame_of], self.code)

    @cached_property
    def called_directly(self) -> Mask:
        """Nodes that a line outside of the framework calls, with no module and nothing of the framework's Python
        between."""
        between = np.isin(self.tree.kinds, (int(FrameKind.PYTHON), int(FrameKind.MODULE)))
        found: Mask = (self.code >= 0) & (nearest(self.tree.shape, between) == self.code)
        return found

    def module(self, row: int) -> str:
        """Name of the module a node is in; empty where it is in none."""
        return self.name(int(self.analysis.scopes.module[row]))

    def line(self, row: int) -> Line | None:
        """The user's line of a node; None where no Python frame is above it."""
        user = self._own_frame(int(self.analysis.scopes.user[row]))
        if user < 0:
            return None
        node = self.tree.node(user)
        return self.line_at(node.file, node.line, "" if node.name == "<module>" else node.name)

    def is_own(self, file: str) -> bool:
        """Whether a file is the program's own, and no library's."""
        return origin(file) == Origin.USER and not self.sources.installed(file)

    def _own_frame(self, user: int) -> int:
        """The row of a user's line; of the line that calls it, where a package was installed beside the program."""
        if user < 0 or self.is_own(file := self.tree.node(user).file) or origin(file) != Origin.USER:
            return user
        for at in reversed(self.tree.path_rows(user)):
            if self.tree.kinds[at] in (int(FrameKind.THREAD), int(FrameKind.PROCESS)):
                break
            if self.tree.kinds[at] == int(FrameKind.PYTHON) and self.is_own(self.tree.node(at).file):
                return int(at)
        return user

    def line_at(self, file: str, line: int, function: str = "") -> Line:
        """A line of a file with its text and what it stands in."""
        source = self.sources.of(file)
        if origin(file) == Origin.USER:
            short = self.sources.installed(file) or short_name(file, self.cwd)
        else:
            short = package_path(file) or file
        if source is None:
            return Line(file, line, function, short)
        return Line(file, line, function, short, source.text(line), self.sources.context(file, line), source.sha256)

    def lines(self, rows: Iterable[int], most: int = 3) -> tuple[Line, ...]:
        """The distinct user's lines of these nodes, in this order."""
        found: dict[tuple[str, int], Line] = {}
        for row in rows:
            line = self.line(row)
            if line is not None:
                found.setdefault((line.file, line.line), line)
            if len(found) >= most:
                break
        return tuple(found.values())
