"""The section of a report on engines that serve: requests, engine steps, batches, the slowest requests."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from leadline.engines import words
from leadline.report.model import Report
from leadline.report.source import visible
from leadline.report.text_tables import table, title

_SLOWEST = 5
_NUMBERS = [("p50", "right"), ("p90", "right"), ("p99", "right"), ("max", "right")]


def serving(console: Console, report: Report) -> None:
    """Nothing where no engine served."""
    engine = report.engine
    if engine is None:
        return
    title(console, "Serving", f"{visible(engine.name)} {visible(engine.version)}; quantiles to 3 %")
    for fact in words.facts(engine):
        console.print(Padding(Text(visible(fact)), (0, 0, 0, 2)))
    table(console, [("requests", "left"), *_NUMBERS], words.request_rows(engine))
    heads = [("engine step", "left"), ("number", "right"), ("of serving", "right"), *_NUMBERS]
    table(console, heads, words.step_rows(engine))
    table(console, [("batch", "left"), *_NUMBERS], words.batch_rows(engine))
    slow = [("slowest requests", "left"), ("came at", "right"), ("end to end", "right"), ("first token", "right")]
    slow += [("tokens in + out", "right"), ("of steps", "right"), ("waited", "left")]
    rows = [[visible(cell) for cell in row] for row in words.slow_rows(engine, min(report.options.top, _SLOWEST))]
    table(console, slow, rows)
    if rows:
        console.print(Padding(Text(f"of steps: {words.SHARE_RULE}", style="bright_black"), (0, 0, 0, 2)))
