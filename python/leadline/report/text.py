"""The report for a terminal: coloured and as wide as the window on one, plain and 100 columns wide elsewhere.

Nothing from the profile is ever read as markup or as a control sequence: every name goes through `phrases`, which
escapes it.
"""

from __future__ import annotations

import io

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from leadline.names import whole_parts
from leadline.report import phrases, text_tables
from leadline.report.encoding import PLAIN_WIDTH
from leadline.report.findings.words import gain_text, headline, label, line_text
from leadline.report.model import HotPath, Report
from leadline.report.ranks_text import render_ranks, spread_text
from leadline.report.serving_text import serving
from leadline.report.source import visible
from leadline.report.steps import sentences
from leadline.report.waits import WAIT_COLUMNS, wait_cells
from leadline.units import duration, in_unit, percent, share, size
from leadline.verdict.text import as_lines, head

_NARROWEST = 60
_INDENT = " " * 8
_PATH_NOTE = "your line, below it module, phase, operator"
_PARTS = {
    "operators": ("o", "blue"),
    "python": ("P", "yellow"),
    "data": ("d", "magenta"),
    "communication": ("c", "cyan"),
    "compile": ("k", "green"),
    "device_wait": ("w", "red"),
    "no_work": ("n", "bright_black"),
    "other_wait": ("t", "bright_red"),
    "idle": (".", "bright_black"),
}


def render_text(report: Report, width: int = PLAIN_WIDTH, colour: bool = False) -> str:
    """The whole report as text that ends with a newline; with ANSI colours where `colour` is true."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=max(width, _NARROWEST),
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
        emoji=False,
        markup=False,
    )
    _header(console, report)
    _verdict(console, report)
    render_ranks(console, report.ranks)
    serving(console, report)
    _steps(console, report)
    text_tables.phases(console, report)
    _time(console, report)
    _waits(console, report)
    text_tables.waiting(console, report)
    _paths(console, report)
    text_tables.functions(console, report)
    text_tables.counters(console, report)
    text_tables.devices(console, report)
    text_tables.hardware(console, report)
    text_tables.links(console, report)
    text_tables.scratch(console, report)
    text_tables.operators(console, report)
    text_tables.modules(console, report)
    text_tables.memory(console, report)
    text_tables.programs(console, report)
    _findings(console, report)
    _quality(console, report)
    _next(console, report)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _header(console: Console, report: Report) -> None:
    meta = report.meta
    console.print(Text("Leadline  ", style="bold blue").append(visible(meta.program), style="bold default"))
    console.print(Text(phrases.environment_text(meta), style="bright_black"))
    if meta.asked:
        console.print(Text(visible(f"options: {meta.asked}"), style="bright_black"))
    if not meta.complete:
        console.print(
            Text("The program was killed or crashed; data after the last flush is missing.", style="bold yellow")
        )
    if report.focus:
        focus = report.focus
        found = (
            "nothing matches"
            if not focus.nodes
            else f"{percent(focus.share)} of {phrases.metric_name(report.path_metric)}"
        )
        console.print(Text(visible(f"Only paths through /{focus.pattern}/: {found}."), style="bold yellow"))


def _verdict(console: Console, report: Report) -> None:
    if report.verdict is None:
        return
    console.print(Text(f"\n{visible(head(report.verdict))}", style="bold"))
    for number, line in enumerate(as_lines(report.verdict, console.width)):
        console.print(Text(visible(line), style="" if number else "bold"), no_wrap=True)


def _steps(console: Console, report: Report) -> None:
    lines = sentences(report.steps) if report.steps is not None else []
    if lines:
        text_tables.title(console, "Steps", "")
    for line in lines:
        console.print(Padding(Text(line), (0, 0, 0, 2)))


def _time(console: Console, report: Report) -> None:
    if not report.splits:
        return
    text_tables.title(console, "Time", phrases.SPLIT_NOTE)
    parts = phrases.parts_shown(report.splits)
    splits = text_tables.longest(report.splits)
    widest = max(len(phrases.thread_text(split)) for split in splits)
    heads = [phrases.PART_NAMES[part].replace("waiting for", "wait:") for part in parts]
    bar_width = max(8, min(24, console.width - widest - 16 - sum(max(len(head), 6) + 2 for head in heads)))
    rows = []
    for split in splits:
        cells: list[str | Text] = [phrases.thread_text(split), duration(split.wall_ns)]
        cells += [phrases.part_share(split, part) for part in parts]
        rows.append([*cells, _bar(phrases.split_parts(split), split.wall_ns, bar_width)])
    columns = [("thread", "left"), ("wall", "right"), *((head, "right") for head in heads), ("", "left")]
    text_tables.table(console, columns, rows)
    text_tables.shorter(console, len(splits), len(report.splits))
    if others := phrases.threads_hidden(*report.splits_hidden):
        console.print(Padding(Text(others, style="bright_black"), (0, 0, 0, 2)))
    for split in splits:
        whose = "" if len(report.splits) == 1 else f"{phrases.thread_text(split)}, "
        said = [f"{part}: {lines}" for part, lines in phrases.split_places(split)]
        for sentence in filter(None, [*said, phrases.device_wait_text(split)]):
            console.print(Padding(Text(visible(f"{whose}{sentence}"), style="bright_black"), (0, 0, 0, 2)))


def _waits(console: Console, report: Report) -> None:
    if not report.waits:
        return
    text_tables.title(console, "Waits", "what the loop's threads did in the trace window, recorded by the Linux kernel")
    text_tables.table(console, WAIT_COLUMNS, [wait_cells(one) for one in report.waits])
    for one in report.waits:
        if one.causes:
            said = Text(visible(f"{one.phase}: {'; '.join(one.causes)}"), style="bright_black")
            console.print(Padding(said, (0, 0, 0, 2)))


def _bar(parts: list[tuple[str, int]], whole: int, width: int) -> Text:
    """Parts as runs of a letter (o, P, d, ..., a dot), so that they are told apart without colour too."""
    bar, drawn, total = Text(), 0, 0
    for name, value in parts:
        total += value
        end = round(width * total / whole) if whole else 0
        letter, style = _PARTS[name]
        bar.append(letter * (end - drawn), style)
        drawn = end
    return bar


def _paths(console: Console, report: Report) -> None:
    metric, total = report.path_metric, report.path_total
    text_tables.title(
        console,
        f"Hottest call paths by {phrases.metric_name(metric)}",
        "; ".join(filter(None, [phrases.paths_base_text(report), _PATH_NOTE])),
    )
    if not report.paths or total is None:
        console.print(Text("  no data" + (" on these paths" if report.focus else ""), style="yellow"))
        return
    for rank, path in enumerate(report.paths, 1):
        value = path.values.get(metric, 0)
        _path(console, rank, path, share(value, total.sum), in_unit(value, total.unit))
    text_tables.more(console, report.paths_hidden, "more paths")


def _path(console: Console, rank: int, path: HotPath, part: str, value: str) -> None:
    head = Text(f"{rank:>4}  {part:>6}  {value:>9}  ")
    calls, callers = phrases.calls_text(path), phrases.callers_text(path)
    below = phrases.below_text(path, width=console.width - len(_INDENT))
    if path.place is None and below:  # the best name there is stands where a line would
        head.append(below, style="bold cyan")
        below = ""
    else:
        head.append(phrases.heading(path), style="bold cyan")
    if calls:
        head.append(f"  {calls}", style="bright_black")
    lines = [head]
    if below:
        lines.append(Text(f"{_INDENT}{below}"))
    if callers:
        room = console.width - len(_INDENT) - len("from ")
        lines.append(Text(f"{_INDENT}from {whole_parts(callers, room, ' ← ')}", style="bright_black"))
    if path.ranks is not None:
        lines.append(Text(f"{_INDENT}{spread_text(path.ranks)}", style="bright_black"))
    for line in lines:
        line.truncate(console.width, overflow="ellipsis")
        console.print(line, no_wrap=True)


def _findings(console: Console, report: Report) -> None:
    if report.findings is None:
        return
    text_tables.title(console, "Findings", f"kept by `leadline analyze --save`: {headline(report.findings)}")
    for one in report.findings:
        where = f"  {line_text(one.lines[0])}" if one.lines else ""
        console.print(Padding(Text(visible(f"{label(one)}: {one.title}{where}")), (0, 0, 0, 2)))
        console.print(Padding(Text(visible(f"Gain: {gain_text(one)}"), style="bright_black"), (0, 0, 0, 4)))


def _quality(console: Console, report: Report) -> None:
    text_tables.title(console, "Capture quality")
    console.print(
        Text(
            f"  {phrases.cost_text(report.cost)}"
            + (f", {size(report.cost.held_bytes)} held" if report.cost.held_bytes else "")
        )
    )
    for sentence in report.meta.estimates:
        console.print(Padding(Text(visible(sentence)), (0, 0, 0, 2)))
    if not report.losses:
        console.print(Text("  nothing lost", style="green"))
    for loss in report.losses:
        console.print(Padding(Text(phrases.loss_text(loss), style="yellow"), (0, 0, 0, 2)))


def _next(console: Console, report: Report) -> None:
    text_tables.title(console, "Next")
    for command in report.next_commands:
        console.print(Text("  " + visible(command)), soft_wrap=True)
