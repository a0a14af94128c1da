"""`leadline top`: a running program in the terminal, looked at every other second. Its tree is that of `view --tui`."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import ContentSwitcher, Footer, Static

from leadline.profiles import ProfileFileError
from leadline.profiles.live import LiveReading, LiveRun
from leadline.report.live import live_facts, live_text
from leadline.report.source import visible
from leadline.terminal.tree_table import TreeTable
from leadline.terminal.view import TreeView, first_options, metrics_of


class TopApp(App[None]):
    """Shows what `run` does until it ends, or until the user leaves."""

    TITLE = "Leadline top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head { height: 1; padding: 0 1; background: $panel; }
    #pages { height: 1fr; }
    #now { padding: 0 1; }
    TreeTable { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "page('now')", "now"),
        Binding("2", "page('nodes')", "tree"),
        Binding("space", "hold", "hold still"),
        Binding("a", "all", "since the start"),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, run: LiveRun, name: str, every_s: float = 2.0) -> None:
        super().__init__()
        self.animation_level = "none"
        self._run = run
        self._name = name
        self._every_s = every_s
        self._look: LiveReading | None = None
        self._held = False
        self._whole = False
        self._ended = ""

    def compose(self) -> ComposeResult:
        yield Static(id="head", markup=False)
        with ContentSwitcher(initial="now", id="pages"):
            with VerticalScroll(id="now"):
                yield Static(id="text", markup=False)
            yield TreeTable(id="nodes")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self.look()
        self.set_interval(self._every_s, self.look)

    def on_resize(self) -> None:
        self._show()

    def look(self) -> None:
        """Read what has changed, unless the user holds the screen."""
        if self._held or self._ended:
            return
        try:
            look = self._run.read()
        except ProfileFileError as error:
            if self._look is not None:
                self._ended = f"the run has ended; `leadline report {self._name}` shows all of it"
            else:
                self._ended = str(error)
            self._show()
            return
        if look is not self._look:
            self._look = look
            self._show()

    def action_page(self, name: str) -> None:
        self.query_one("#pages", ContentSwitcher).current = name
        self._show()
        if name == "nodes":
            self.query_one(TreeTable).focus()

    def action_hold(self) -> None:
        self._held = not self._held
        self._show()

    def action_all(self) -> None:
        self._whole = not self._whole
        self._show()

    def _show(self) -> None:
        state = self._ended or ("paused; space resumes" if self._held else "since the start" if self._whole else "now")
        self.query_one("#head", Static).update(Text(visible(f"{self._name}  {state}"), no_wrap=True))
        look = self._look
        if look is None:
            return
        shown = LiveReading(look.whole, look.whole, look.seconds, look.age_s, look.ended) if self._whole else look
        text = live_text(live_facts(shown), max(40, self.size.width - 4), max(5, self.size.height - 10))
        self.query_one("#text", Static).update(Text(text, no_wrap=True, overflow="ellipsis"))
        if self.query_one("#pages", ContentSwitcher).current == "nodes":
            tree = shown.now.tree
            metrics = metrics_of(tree)
            metric = str(metrics[0].kind) if metrics else "time"
            self.query_one(TreeTable).show(TreeView(tree, first_options(shown.now, metric)))
