"""The tree as lines: value, share, self, and the name indented below its callers. Draws what is in sight only."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message

from leadline.analysis.columns import Mask
from leadline.schema import FrameKind, MetricKind, metric_info
from leadline.terminal.lines import Lines
from leadline.terminal.view import TreeView, ViewNode, library_frames
from leadline.units import in_unit, share

KIND_COLOURS = {
    FrameKind.PYTHON: "yellow",
    FrameKind.MODULE: "green",
    FrameKind.OPERATOR: "blue",
    FrameKind.API: "bright_yellow",
    FrameKind.KERNEL: "red",
    FrameKind.COPY: "bright_magenta",
    FrameKind.COLLECTIVE: "magenta",
    FrameKind.REGION: "cyan",
    FrameKind.PHASE: "bright_cyan",
}
_MOST_CHILDREN = 200  # of one node, until more are asked for
_NARROW = 60  # columns below which only the share stands before the name
_HOT = 0.5  # of its parent, for a child to be opened with it


class TreeTable(Lines):
    """One `TreeView`; `chosen` is the node under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right", "open_node", "open"),
        Binding("left", "close_node", "close"),
        Binding("x", "hot", "open the hot path"),
    ]

    class Chosen(Message):
        """The cursor stands on another node."""

        def __init__(self, node: ViewNode) -> None:
            super().__init__()
            self.node = node

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.view: TreeView | None = None
        self._lines: list[tuple[ViewNode, int]] = []  # (node, 0) or, for "n more", (their parent, number)
        self._most: dict[int, int] = {}  # children shown of a node, by its id, where more were asked for
        self._library: Mask | None = None

    # ---------------------------------------------------------------- content

    def show(self, view: TreeView) -> None:
        """Another view; the cursor stands at its top."""
        self.view = view
        self._most.clear()
        self._library = library_frames(view.tree)
        view.root.opened = True
        self._open_hot(view.root)
        self._arrange()
        self.move_to(0)

    @property
    def chosen(self) -> ViewNode | None:
        return self._lines[self.cursor][0] if self._lines else None

    def reveal(self, path: list[ViewNode]) -> None:
        """Opens the nodes of a path from the root down and stands on the last."""
        if self.view is None:
            return
        for parent, child in pairwise(path):
            parent.opened = True
            place = self.view.children(parent).index(child)
            if place >= self._most.get(id(parent), _MOST_CHILDREN):
                self._most[id(parent)] = place + 1
        self._arrange()
        self.move_to(next(i for i, line in enumerate(self._lines) if line == (path[-1], 0)))

    def _open_hot(self, node: ViewNode) -> None:
        """Opens the path of largest values, as long as one child has most of its parent."""
        assert self.view is not None
        for _ in range(1000):
            children = self.view.children(node)
            node.opened = bool(children)
            if not children or children[0].value < _HOT * node.value:
                return
            node = children[0]

    def _arrange(self) -> None:
        """The lines in sight of the opened nodes."""
        assert self.view is not None
        self._lines = []
        stack: list[tuple[ViewNode, int]] = [(self.view.root, 0)]
        while stack:
            node, more = stack.pop()
            self._lines.append((node, more))
            if more or not node.opened:
                continue
            children = self.view.children(node)
            most = self._most.get(id(node), _MOST_CHILDREN)
            if len(children) > most:
                stack.append((node, len(children) - most))
            stack.extend((child, 0) for child in reversed(children[:most]))
        self.arranged()

    def count(self) -> int:
        return len(self._lines)

    def moved(self) -> None:
        self.post_message(self.Chosen(self._lines[self.cursor][0]))

    # ---------------------------------------------------------------- keys

    def action_open_node(self) -> None:
        node, more = self._lines[self.cursor]
        if more:
            self.entered()
        elif not node.opened and self.view is not None and self.view.children(node):
            node.opened = True
            self._arrange()
        else:
            self.move_to(self.cursor + 1)

    def action_close_node(self) -> None:
        node, more = self._lines[self.cursor]
        if node.opened and not more:
            node.opened = False
            self._arrange()
        elif (above := node if more else node.parent) is not None:
            self.move_to(next(i for i, line in enumerate(self._lines) if line == (above, 0)))

    def entered(self) -> None:
        node, more = self._lines[self.cursor]
        if more:
            self._most[id(node)] = self._most.get(id(node), _MOST_CHILDREN) * 5
        else:
            node.opened = not node.opened and self.view is not None and bool(self.view.children(node))
        self._arrange()
        self.move_to(self.cursor)

    def action_hot(self) -> None:
        """Opens the hot path below the cursor and goes to its end."""
        node, more = self._lines[self.cursor]
        if more or self.view is None:
            return
        self._open_hot(node)
        path = [node]
        while path[-1].opened and self.view.children(path[-1]):
            child = self.view.children(path[-1])[0]
            if child.value < _HOT * path[-1].value:
                break
            path.append(child)
        self.reveal(path)

    # ---------------------------------------------------------------- drawing

    def line(self, place: int, width: int) -> Text:
        view = self.view
        if view is None:
            return Text()
        node, more = self._lines[place]
        depth = node.depth + (1 if more else 0)
        line = Text(no_wrap=True, end="")
        if more:
            hidden = view.children(node)[-more:]
            line.append(_numbers(view, sum(child.value for child in hidden), None, width))
            line.append(_indent(depth, width) + f"  … {more:,} more; Enter shows them", "dim")
            return line
        frame = int(view.tree.frame_of[node.row])
        line.append(_numbers(view, node.value, node, width))
        below = bool(view.children(node)) if node.value else False
        line.append(_indent(depth, width) + ("▾ " if node.opened and below else "▸ " if below else "  "), "dim")
        kind = FrameKind(view.tree.frames["kind"][frame])
        quiet = self._library is not None and bool(self._library[frame])
        line.append(view.label(node), Style.parse(KIND_COLOURS.get(kind, "") + (" dim" if quiet else "")))
        return line


def _numbers(view: TreeView, value: int, node: ViewNode | None, width: int) -> str:
    part = share(value, view.total)
    if width < _NARROW:
        return f"{part:>6} "
    unit = metric_info(MetricKind.of(view.options.metric)).unit
    own = in_unit(view.own(node), unit) if node is not None and not view.options.inverted else ""
    return f"{in_unit(value, unit):>10} {part:>6} " + ("" if view.options.inverted else f"{own:>10} ")


def _indent(depth: int, width: int) -> str:
    """A level is a column; a path deeper than a third of the window says how deep instead of leaving it."""
    room = max(4, width // 3)
    return " " * depth if depth <= room else f"{'‹' + str(depth) + '› ':>{room}}"
