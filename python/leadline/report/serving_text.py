"""The section of a report on engines that serve: requests, engine steps, batches, the slowest requests."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from leadline.engines import Engine, words
from leadline.report.markup import escaped
from leadline.report.markup import table as markdown_table
from leadline.report.model import Report
from leadline.report.source import visible
from leadline.report.text_tables import table, title

_SLOWEST = 5


def serving(console: Console, report: Report) -> None:
    """Nothing where no engine served."""
    engine = report.engine
    if engine is None:
        return
    title(console, _head(engine), f"{visible(engine.name)} {visible(engine.version)}; quantiles to 3 %")
    for fact in words.facts(engine):
        console.print(Padding(Text(visible(fact)), (0, 0, 0, 2)))
    for one in words.tables(engine, min(report.options.top, _SLOWEST)):
        heads = [(head, "left" if text else "right") for head, text in zip(one.heads, one.texts, strict=True)]
        table(console, heads, [[visible(cell) for cell in row] for row in one.rows])
        if one.note:
            console.print(Padding(Text(one.note, style="bright_black"), (0, 0, 0, 2)))


def _head(engine: Engine) -> str:
    return "Generation" if engine.called else "Serving"


def markdown_serving(report: Report) -> str:
    """The same as Markdown."""
    engine = report.engine
    if engine is None:
        return ""
    parts = [f"### {_head(engine)}: {escaped(visible(f'{engine.name} {engine.version}'))}"]
    parts.append("\n".join(f"- {escaped(visible(fact))}" for fact in words.facts(engine)))
    for one in words.tables(engine, min(report.options.top, _SLOWEST)):
        parts.append(markdown_table(list(one.heads), [[escaped(visible(cell)) for cell in row] for row in one.rows]))
        parts += [escaped(f"{one.note}.")] if one.note else []
    return "\n\n".join(parts)
