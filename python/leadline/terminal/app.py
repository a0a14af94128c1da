"""The application: overview, tree, tables, source and timeline of one profile; keys as on the page."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import ClassVar

from rich.console import Group
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import ContentSwitcher, Footer, Input, Static

from leadline.analysis import analysis_of
from leadline.analysis.findings import Findings, from_object
from leadline.profiles import Profile
from leadline.report import ReportOptions, build_report
from leadline.report.phrases import metric_name
from leadline.report.source import visible
from leadline.report.text import render_text
from leadline.report.timeline import TimelineError, as_text
from leadline.report.timeline import chosen as chosen_steps
from leadline.schema import MetricKind, metric_info
from leadline.terminal.details import details
from leadline.terminal.help import Help
from leadline.terminal.search import BadSearchError, Found, Search
from leadline.terminal.source_view import SourceView
from leadline.terminal.table_page import TablePage
from leadline.terminal.tables import TableMaker
from leadline.terminal.tree_table import TreeTable
from leadline.terminal.view import TreeView, first_options, metrics_of
from leadline.units import in_unit, number, share

PAGES = ("overview", "tree", "tables", "source", "timeline")
_TOP = 200


class ViewApp(App[None]):
    """Shows `profile`; `file` is its name as commands should give it."""

    TITLE = "Leadline"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head, #foot, #tree-head, #source-head, #table-note { height: 1; padding: 0 1; }
    #head { background: $panel; }
    #foot { color: $text-muted; }
    #details { height: auto; max-height: 12; padding: 0 1; border-top: solid $panel; }
    #search { display: none; height: 1; border: none; padding: 0 1; }
    #search.asked { display: block; }
    .short #details { display: none; }
    #pages { height: 1fr; }
    TreeTable, SourceView, DataTable { height: 1fr; }
    #overview, #timeline { padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(i), f"page('{name}')", show=False) for i, name in enumerate(PAGES, 1)),
        Binding("slash", "search", "search"),
        Binding("n", "next_found(1)", show=False),
        Binding("N", "next_found(-1)", show=False),
        Binding("i", "flip('inverted')", "bottom-up"),
        Binding("h", "flip('hide_library')", "hide library"),
        Binding("l", "flip('fold_layers')", "fold layers"),
        Binding("p", "flip('join_processes')", show=False),
        Binding("m", "metric", "next metric"),
        Binding("s", "source", "source"),
        Binding("t", "theme", show=False),
        Binding("question_mark", "help", "keys"),
        Binding("escape", "leave", show=False),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, profile: Profile, file: str) -> None:
        super().__init__()
        self.animation_level = "none"  # nothing jumps, and a slow line carries no more than what changed
        self._profile = profile
        self._report = build_report(profile, ReportOptions(top=_TOP, merge_layers=True, verdict=True), file)
        self._file = file
        self._analysis = analysis_of(profile)
        self._metrics = metrics_of(profile.tree)
        first = str(self._metrics[0].kind) if self._metrics else "time"
        self._options = first_options(profile, first)
        self._search = Search(profile.tree)
        self._found: Found | None = None
        self._found_at = -1
        self._timeline: str | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="head", markup=False)
        with ContentSwitcher(initial="overview", id="pages"):
            with VerticalScroll(id="overview"):
                yield Static(id="report", markup=False)
            with Vertical(id="tree"):
                yield Static(id="tree-head", markup=False)
                yield TreeTable(id="nodes")
                yield Static(id="details", markup=False)
            yield TablePage(TableMaker(self._profile, self._report, self._findings), id="tables")
            with Vertical(id="source"):
                yield Static(id="source-head", markup=False)
                yield SourceView(self._analysis, id="lines")
            with VerticalScroll(id="timeline"):
                yield Static(id="steps", markup=False)
        yield Input(id="search", placeholder="name, class or file:line; /.../ is a regular expression", compact=True)
        yield Static(id="foot", markup=False)
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self._show_view()
        self.action_page("overview")

    def on_resize(self) -> None:
        self.set_class(self.size.height < 20, "short")
        width = max(40, self.size.width - 4)
        text = render_text(self._report, width, True)
        self.query_one("#report", Static).update(Text.from_ansi(text, no_wrap=True, overflow="ellipsis"))

    # ---------------------------------------------------------------- pages

    @property
    def page(self) -> str:
        return str(self.query_one("#pages", ContentSwitcher).current)

    def action_page(self, name: str) -> None:
        self.query_one("#pages", ContentSwitcher).current = name
        head = Text(no_wrap=True, overflow="ellipsis")
        for i, one in enumerate(PAGES, 1):
            head.append(f" {i} {one.capitalize()} ", "reverse bold" if one == name else "")
        head.append(f"  {visible(self._report.meta.program)}", "dim")
        self.query_one("#head", Static).update(head)
        self._say("")
        if name == "tables":
            tables = self.query_one(TablePage)
            if not tables.shown:
                tables.show("operators")
            tables.focus_rows()
        else:
            focus = {"tree": "#nodes", "source": "#lines"}.get(name, f"#{name}")
            self.query_one(focus).focus()
        if name == "source":
            self._hottest_source()
            self._source_head()
        if name == "timeline":
            self._show_timeline()

    def _say(self, text: str) -> None:
        self.query_one("#foot", Static).update(Text(visible(text), no_wrap=True, overflow="ellipsis"))

    # ---------------------------------------------------------------- tree

    @property
    def _tree_table(self) -> TreeTable:
        return self.query_one(TreeTable)

    def _show_view(self) -> None:
        view = TreeView(self._profile.tree, self._options)
        unit = metric_info(MetricKind.of(self._options.metric)).unit
        head = Text(no_wrap=True, overflow="ellipsis")
        head.append("bottom-up" if self._options.inverted else "top-down", "bold")
        head.append(f" by {metric_name(self._options.metric)}, {in_unit(view.total, unit)} in all")
        words = {"hide_library": "library hidden", "fold_layers": "layers folded", "join_processes": "processes joined"}
        head.append("".join(f", {word}" for name, word in words.items() if getattr(self._options, name)), "dim")
        if not view.total:
            head = Text("Nothing was measured in this profile; `leadline report` says why.")
        self.query_one("#tree-head", Static).update(head)
        self._tree_table.show(view)

    def on_tree_table_chosen(self, message: TreeTable.Chosen) -> None:
        if self._tree_table.view is not None:
            made = details(self._tree_table.view, message.node, self._analysis.scopes)
            self.query_one("#details", Static).update(Group(*made))

    def action_flip(self, name: str) -> None:
        chosen = self._tree_table.chosen
        row = chosen.row if chosen else 0
        self._options = self._options.flipped(name)
        self._show_view()
        if name != "inverted" and not self._options.inverted and row:
            self._go(row)
        self.action_page("tree")

    def action_metric(self) -> None:
        names = [str(info.kind) for info in self._metrics]
        if names:
            place = names.index(self._options.metric) + 1
            self._options = replace(self._options, metric=names[place % len(names)])
            self._found = None
            self._show_view()
        self.action_page("tree")

    def _go(self, row: int) -> None:
        """Stands on a node of the tree, top-down."""
        if self._options.inverted:
            self._options = replace(self._options, inverted=False)
            self._show_view()
        if self._tree_table.view is not None:
            self._tree_table.reveal(self._tree_table.view.find(row))

    # ---------------------------------------------------------------- search

    def action_search(self) -> None:
        if self.page not in ("tree", "tables"):
            self.action_page("tree")
        field = self.query_one("#search", Input)
        field.add_class("asked")
        field.value = ""
        field.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.query_one("#search", Input).remove_class("asked")
        text = event.value.strip()
        try:
            if self.page == "tables":
                self.query_one(TablePage).filter(text)
                self.action_page("tables")
            else:
                self.action_page("tree")
                self._find(text)
        except BadSearchError as error:
            self._say(str(error))

    def _find(self, text: str) -> None:
        self._found = self._search.find(text, self._options.metric) if text else None
        self._found_at = -1
        if self._found is None:
            return
        if not len(self._found.rows):
            self._say(f"Nothing with {text!r} in its name, class or place has {metric_name(self._options.metric)}.")
            return
        self.action_next_found(1)

    def action_next_found(self, by: int) -> None:
        """Goes through what was found, the most expensive first."""
        if self._found is None or not len(self._found.rows):
            return
        many = len(self._found.rows)
        self.action_page("tree")
        before = None if self._found_at < 0 else self._tree_table.chosen
        for _ in range(many):  # paths that are drawn as one are one stop
            self._found_at = (self._found_at + by) % many
            self._go(int(self._found.rows[self._found_at]))
            if self._tree_table.chosen is not before:
                break
        whole = self._tree_table.view.total if self._tree_table.view else 0
        unit = metric_info(MetricKind.of(self._options.metric)).unit
        sums = f"{in_unit(self._found.total, unit)} ({share(self._found.total, whole)}) together"
        self._say(f"{number(self._found_at + 1)} of {number(many)} found, {sums}; n and N go to the next and previous")

    def action_leave(self) -> None:
        """Closes the search, forgets what was found, shows all rows."""
        self.query_one("#search", Input).remove_class("asked")
        self._found = None
        if self.page == "tables":
            self.query_one(TablePage).filter("")
        self.action_page(self.page)

    # ---------------------------------------------------------------- source

    def action_source(self) -> None:
        """The source of what is chosen: its own line, or the user's line that it is booked on."""
        chosen = self._tree_table.chosen
        tree = self._profile.tree
        row = chosen.row if chosen else 0
        if int(tree.frames["line"][tree.frame_of[row]]) <= 0:
            row = int(self._analysis.scopes.user[row])
        if row < 0 or not tree.node(row).file:
            self._say("No Python line is above this frame.")
            return
        self._open(tree.node(row).file, tree.node(row).line)

    def _open(self, file: str, line: int) -> None:
        self.query_one(SourceView).show(file, line, self._options.metric)
        self.action_page("source")

    def _hottest_source(self) -> None:
        """Where none was chosen, the line that stands first among the hottest paths."""
        source = self.query_one(SourceView)
        hottest = next((path.place for path in self._report.paths if path.place is not None), None)
        if not source.file and hottest is not None:
            source.show(hottest.file, hottest.line, self._options.metric)

    def _source_head(self) -> None:
        source = self.query_one(SourceView)
        head = Text(no_wrap=True, overflow="ellipsis")
        if source.file:
            head.append(visible(source.file), "bold")
            head.append(f"  {metric_name(self._options.metric)}: booked on the line, and with all it called", "dim")
        self.query_one("#source-head", Static).update(head)
        if source.note:
            self._say(source.note)

    def on_source_view_entered(self, message: SourceView.Entered) -> None:
        self.action_page("tree")
        self._go(message.node)

    def on_table_page_entered(self, message: TablePage.Entered) -> None:
        row = message.row
        if row.file:
            self._open(row.file, row.line)
        elif row.search:
            self.action_page("tree")
            self._find(row.search)
        elif row.node >= 0:
            self.action_page("tree")
            self._go(row.node)

    # ---------------------------------------------------------------- timeline

    def _show_timeline(self) -> None:
        """What each thread did in each step of the window; made when first looked at."""
        if self._timeline is None:
            try:
                self._timeline = as_text(self._profile, chosen_steps(self._profile, self._file))
            except TimelineError as error:
                self._timeline = str(error)
        self.query_one("#steps", Static).update(Text(self._timeline, no_wrap=True))

    # ---------------------------------------------------------------- others

    def _findings(self) -> Findings:
        return self._saved_findings or self._profile.findings()

    @cached_property
    def _saved_findings(self) -> Findings | None:
        """Those that `leadline analyze --save` left in the file."""
        saved = self._profile.meta.get("findings")
        try:
            return from_object(saved) if isinstance(saved, dict) else None
        except ValueError:
            return None

    def action_theme(self) -> None:
        self.theme = "textual-light" if self.theme != "textual-light" else "textual-dark"

    def action_help(self) -> None:
        self.push_screen(Help())
