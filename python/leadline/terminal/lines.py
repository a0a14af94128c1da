"""A list of lines with a cursor, of any length: only what is in sight is drawn."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip


class Lines(ScrollView, can_focus=True):
    """What the tree and the source are drawn with. A subclass gives `count` and `line`, hears `stood` and `entered`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home,g", "to_first", show=False),
        Binding("end,G", "to_last", show=False),
        Binding("enter,space", "enter_line", show=False),
    ]
    cursor = 0

    def count(self) -> int:
        """How many lines there are."""
        raise NotImplementedError

    def line(self, place: int, width: int) -> Text:
        """One of them; longer ones are cut."""
        raise NotImplementedError

    def moved(self) -> None:
        """The cursor stands on another line."""

    def entered(self) -> None:
        """Enter, or a click on the line under the cursor."""

    def arranged(self) -> None:
        """There are other lines than before."""
        self.cursor = max(0, min(self.cursor, self.count() - 1))
        self.virtual_size = Size(self.size.width, self.count())
        self.refresh()

    def move_to(self, place: int) -> None:
        """Moves the cursor to a line, as near as there is one."""
        if self.count():
            self.cursor = max(0, min(place, self.count() - 1))
            self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True)
            self.refresh()
            self.moved()

    def action_move(self, by: int) -> None:
        self.move_to(self.cursor + by)

    def action_page(self, by: int) -> None:
        self.move_to(self.cursor + by * max(1, self.size.height - 1))

    def action_to_first(self) -> None:
        self.move_to(0)

    def action_to_last(self) -> None:
        self.move_to(self.count() - 1)

    def action_enter_line(self) -> None:
        if self.count():
            self.entered()

    def on_click(self, event: events.Click) -> None:
        place = event.y + self.scroll_offset.y
        if place < self.count():
            again = place == self.cursor
            self.move_to(place)
            if again:
                self.entered()

    def on_resize(self) -> None:
        self.virtual_size = Size(self.size.width, self.count())

    def render_line(self, y: int) -> Strip:
        place = y + self.scroll_offset.y
        width = self.size.width
        base = self.rich_style
        if place >= self.count():
            return Strip.blank(width, base)
        line = self.line(place, width)
        line.truncate(width, overflow="ellipsis")
        mark = Style()
        if place == self.cursor:
            mark = Style(reverse=True) if self.has_focus else Style(underline=True)
        segments = [
            Segment(segment.text, base + (segment.style or Style()) + mark)
            for segment in line.render(self.app.console)
            if not segment.control
        ]
        return Strip(segments).adjust_cell_length(width, base + mark)
