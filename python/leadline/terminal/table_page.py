"""One table at a time: sorted by any column, filtered by a text, a row leads to the tree or to the source."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import DataTable, Static, Tab, Tabs

from leadline.report.csv_text import csv_text
from leadline.report.phrases import name_text
from leadline.terminal.search import BadSearchError, matcher
from leadline.terminal.tables import NAMES, Row, TableData, TableMaker, Value, sorted_rows
from leadline.units import number

_MOST_ROWS = 1000  # drawn; a filter finds the others
_MOST_TEXT = 70  # of one cell


class TablePage(Vertical):
    """The tables of one profile."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right_square_bracket", "table(1)", "next table"),
        Binding("left_square_bracket", "table(-1)", show=False),
        Binding("o", "order(1)", "order by the next column"),
        Binding("O", "order(-1)", show=False),
        Binding("v", "reverse", "reverse"),
        Binding("c", "copy", "copy as CSV"),
    ]

    class Entered(Message):
        """A row was chosen."""

        def __init__(self, row: Row) -> None:
            super().__init__()
            self.row = row

    def __init__(self, maker: TableMaker, *, id: str) -> None:
        super().__init__(id=id)
        self._maker = maker
        self._filter = ""
        self._table: TableData | None = None
        self._column = 0
        self._descending = True
        self._rows: list[Row] = []

    def compose(self) -> ComposeResult:
        yield Tabs(*(Tab(name.capitalize(), id=f"table-{name}") for name in NAMES))
        yield Static(id="table-note", markup=False)
        yield DataTable(id="rows", cursor_type="row", zebra_stripes=True)

    @property
    def shown(self) -> str:
        """Name of the table in sight; empty before the first."""
        return self._table.name if self._table else ""

    def on_mount(self) -> None:
        self.query_one(Tabs).can_focus = False  # its tables have keys of their own

    def show(self, name: str) -> None:
        """Raises KeyError for a name that is no table."""
        self._table = self._maker.table(name)
        self._column, self._descending, self._filter = self._table.sort, True, ""
        self.query_one(Tabs).active = f"table-{name}"
        self._draw()

    def focus_rows(self) -> None:
        self.query_one(DataTable).focus()

    def filter(self, text: str) -> None:
        """Shows the rows with that text in any cell only, or between slashes a regular expression. Raises
        BadSearchError."""
        matcher(text)
        self._filter = text
        self._draw()

    def on_tabs_tab_activated(self, event: Tabs.TabActivated) -> None:
        name = (event.tab.id or "").removeprefix("table-")
        if self._table is not None and name != self._table.name:
            self.show(name)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        if event.cursor_row < len(self._rows):
            self.post_message(self.Entered(self._rows[event.cursor_row]))

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        if event.column_index == self._column:
            self._descending = not self._descending
        self._column = event.column_index
        self._draw()

    def action_table(self, by: int) -> None:
        self.show(NAMES[(NAMES.index(self.shown or NAMES[0]) + by) % len(NAMES)])

    def action_order(self, by: int) -> None:
        if self._table:
            self._column = (self._column + by) % len(self._table.columns)
            self._descending = self._table.columns[self._column].unit != "text"
            self._draw()

    def action_reverse(self) -> None:
        self._descending = not self._descending
        self._draw()

    def action_copy(self) -> None:
        """The rows in sight, in base units, to the clipboard of the terminal."""
        if self._table is None:
            return
        titles = [
            f"{one.title} ({one.unit})" if one.unit in ("ns", "bytes") else one.title for one in self._table.columns
        ]
        self.app.copy_to_clipboard(csv_text([titles, *(row.cells for row in self._rows)]))
        self.app.notify(f"{number(len(self._rows))} rows copied, if this terminal has a clipboard.", markup=False)

    def _draw(self) -> None:
        table = self._table
        if table is None:
            return
        grid: DataTable[Text] = self.query_one(DataTable)
        grid.clear(columns=True)
        for i, column in enumerate(table.columns):
            arrow = (" ▼" if self._descending else " ▲") if i == self._column else ""
            grid.add_column(Text(column.title + arrow, justify="left" if column.unit == "text" else "right"))
        found = self._found(table)
        self._rows = found[:_MOST_ROWS]
        for row in self._rows:
            grid.add_row(*(self._cell(table, i, value) for i, value in enumerate(row.cells)))
        self.query_one("#table-note", Static).update(Text(self._note(table, len(found)), "dim"))

    def _found(self, table: TableData) -> list[Row]:
        rows = sorted_rows(table, self._column, self._descending)
        if not self._filter:
            return rows
        try:
            matches = matcher(self._filter)
        except BadSearchError:
            return rows
        return [row for row in rows if matches(" ".join(cell for cell in row.cells if isinstance(cell, str)))]

    def _note(self, table: TableData, found: int) -> str:
        if not table.rows:
            return table.empty
        parts = [f"{table.title}: {number(len(table.rows))}"]
        if self._filter:
            parts.append(f"{number(found)} with {name_text(self._filter)!r} (Esc shows all)")
        if found > _MOST_ROWS:
            parts.append(f"the first {number(_MOST_ROWS)} are shown; / finds the others")
        return ", ".join([*parts, *([table.note] if table.note else [])])

    def _cell(self, table: TableData, place: int, value: Value) -> Text:
        text = table.columns[place].cell(value)
        if isinstance(value, str):
            shown = name_text(text) if text or place == 0 else ""
            most = max(16, min(_MOST_TEXT, self.app.size.width - 36))  # so that columns of numbers stand beside it
            return Text(shown if len(shown) <= most else shown[: most - 1] + "…")
        return Text(text, justify="right")
