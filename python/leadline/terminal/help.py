"""The list of keys."""

from __future__ import annotations

from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

KEYS = (
    ("1 to 5", "overview, tree, tables, source, timeline"),
    ("/", "search the tree, or filter a table; /.../ is a regular expression"),
    ("n N", "next and previous of what was found"),
    ("i", "bottom-up or top-down"),
    ("h", "hide or show library frames"),
    ("l", "fold numbered layers"),
    ("p", "join processes and threads"),
    ("m", "next metric"),
    ("arrows, Enter", "move, open and close"),
    ("x", "open the hot path below the cursor"),
    ("s", "the source of the frame; Enter on a line leads back"),
    ("[ ]", "previous and next table"),
    ("o v", "order a table by the next column, reverse it"),
    ("c", "copy a table as CSV"),
    ("t", "light or dark"),
    ("Esc", "close the search, show all rows"),
    ("q", "quit"),
)


class Help(ModalScreen[None]):
    """Any of ?, Esc, q closes it."""

    CSS = """
    Help { align: center middle; }
    #keys { width: 80; max-width: 100%; height: auto; max-height: 100%; border: round $primary; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q,enter", "dismiss", "close")]

    def compose(self) -> ComposeResult:
        table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
        for key, what in KEYS:
            table.add_row(Text(key, "bold", no_wrap=True), Text(what))
        with VerticalScroll(id="keys"):
            yield Static(table)
