"""The report for a terminal: coloured and as wide as the window on one, plain and 100 columns wide elsewhere.

Nothing from the profile is ever read as markup or as a control sequence: every name goes through `phrases`, which
escapes it.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from leadline.report import phrases
from leadline.report.model import HotPath, Report
from leadline.report.source import visible
from leadline.report.units import duration, in_unit, number, share, size

_PLAIN_WIDTH = 100
_NARROWEST = 60
_INDENT = " " * 8
_PEAKS_IN_DETAIL = 2
_ASCII = str.maketrans({"›": ">", "·": "-", "µ": "u", "×": "x", "…": "~", "←": "<"})
_PARTS = {
    "operators": ("o", "blue"),
    "Python": ("P", "yellow"),
    "data loading": ("d", "magenta"),
    "idle": (".", "bright_black"),
}


def render_text(report: Report, width: int = _PLAIN_WIDTH, colour: bool = False) -> str:
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
    _time(console, report)
    _paths(console, report)
    _gpu(console, report)
    _operators(console, report)
    _modules(console, report)
    _phases(console, report)
    _memory(console, report)
    _quality(console, report)
    _next(console, report)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def for_stream(stream: TextIO) -> tuple[int, bool]:
    """Width and whether to use colour on `stream`: its window and NO_COLOR/TERM decide."""
    terminal = stream.isatty()
    width = shutil.get_terminal_size((_PLAIN_WIDTH, 24)).columns if terminal else _columns_variable()
    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return width, colour


def _columns_variable() -> int:
    stated = os.environ.get("COLUMNS", "")
    return int(stated) if stated.isdigit() and int(stated) > 0 else _PLAIN_WIDTH


def encodable(text: str, stream: TextIO) -> str:
    """`text` in what `stream` can take: an ASCII or Latin-1 terminal gets plain characters, never an error."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
        return text
    except (UnicodeEncodeError, LookupError):
        return (
            text.translate(_ASCII)
            .encode(encoding if _known(encoding) else "ascii", "replace")
            .decode("ascii", "replace")
        )


def _known(encoding: str) -> bool:
    try:
        "".encode(encoding)
        return True
    except LookupError:
        return False


def _title(console: Console, text: str, note: str = "") -> None:
    line = Text("\n" + text, style="bold")
    if note:
        line.append(f"  {note}", style="not bold bright_black")
    console.print(line)


def _table(console: Console, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str | Text]]) -> None:
    """Columns are (heading, justify). Only the first one gives way where the window is narrow. No rows, no table."""
    if not rows:
        return
    table = Table(box=None, pad_edge=False, header_style="bright_black", padding=(0, 2, 0, 0))
    cells = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    others = sum(max(len(head), *(len(row[i]) for row in cells)) + 2 for i, (head, _) in enumerate(columns) if i)
    room = max(console.width - others - 4, 16)
    for i, (heading, justify) in enumerate(columns):
        table.add_column(
            heading,
            justify="right" if justify == "right" else "left",
            no_wrap=True,
            overflow="ellipsis",
            max_width=None if i else room,
            min_width=max(len(row[i]) for row in cells) if i else None,
        )
    for row in cells:
        table.add_row(*row)
    console.print(Padding(table, (0, 0, 0, 2)))


def _header(console: Console, report: Report) -> None:
    meta = report.meta
    console.print(Text("Leadline  ", style="bold blue").append(visible(meta.program), style="bold default"))
    console.print(Text(phrases.environment_text(meta), style="bright_black"))
    if meta.asked:
        console.print(Text(visible(f"asked: {meta.asked}"), style="bright_black"))
    if not meta.complete:
        console.print(Text("The run did not end in order: this is what its last segments hold.", style="bold yellow"))
    if report.focus:
        focus = report.focus
        found = (
            "nothing matches"
            if not focus.nodes
            else f"{100 * focus.share:.1f}% of {phrases.metric_name(report.path_metric)}"
        )
        console.print(Text(visible(f"Only paths through /{focus.pattern}/: {found}."), style="bold yellow"))


def _time(console: Console, report: Report) -> None:
    if not report.splits:
        return
    _title(console, "Time", "wall time of each thread that worked; Python and idle are told apart by its CPU time")
    longest = max(len(phrases.thread_text(split)) for split in report.splits)
    bar_width = max(8, min(24, console.width - longest - 58))
    rows = []
    for split in report.splits:
        cells: list[str | Text] = [phrases.thread_text(split), duration(split.wall_ns)]
        cells += [share(value, split.wall_ns) for _, value in phrases.split_parts(split)]
        rows.append([*cells, _bar(phrases.split_parts(split), split.wall_ns, bar_width)])
    columns = [
        ("thread", "left"),
        ("wall", "right"),
        ("operators", "right"),
        ("Python", "right"),
        ("data loading", "right"),
    ]
    _table(console, [*columns, ("idle", "right"), ("", "left")], rows)


def _bar(parts: list[tuple[str, int]], whole: int, width: int) -> Text:
    """Parts as runs of a letter (o, P, d, a dot), so that they are told apart without colour too."""
    bar, drawn, total = Text(), 0, 0
    for name, value in parts:
        total += value
        end = round(width * total / whole) if whole else 0
        letter, style = _PARTS[name]
        bar.append(letter * (end - drawn), style)
        drawn = end
    return bar


def _paths(console: Console, report: Report) -> None:
    metric, total = report.path_metric, report.totals.get(report.path_metric)
    _title(
        console,
        f"Hottest call paths by {phrases.metric_name(metric)}",
        "your line, then module, phase and operator below it",
    )
    if not report.paths or total is None:
        console.print(Text("  n/a: nothing was measured" + (" on these paths" if report.focus else ""), style="yellow"))
        return
    for rank, path in enumerate(report.paths, 1):
        value = path.values.get(metric, 0)
        _path(console, rank, path, share(value, total.sum), in_unit(value, total.unit))
    _more(console, report.paths_hidden, "more paths")


def _path(console: Console, rank: int, path: HotPath, part: str, value: str) -> None:
    head = Text(f"{rank:>4}  {part:>6}  {value:>9}  ")
    head.append(phrases.place_text(path.place), style="bold cyan")
    calls, below, callers = phrases.calls_text(path), phrases.below_text(path), phrases.callers_text(path)
    if calls:
        head.append(f"  {calls}", style="bright_black")
    lines = [head]
    if below:
        lines.append(Text(f"{_INDENT}{below}"))
    if callers:
        lines.append(Text(f"{_INDENT}from {callers}", style="bright_black"))
    for line in lines:
        line.truncate(console.width, overflow="ellipsis")
        console.print(line, no_wrap=True)


def _gpu(console: Console, report: Report) -> None:
    gpu = report.gpu
    if gpu is None:
        return
    waited = f"threads waited {duration(gpu.sync_ns)} for devices" if gpu.sync_ns else ""
    _title(console, "Devices", waited)
    columns = [("device", "left"), ("kernels", "right"), ("time", "right"), ("copies", "right"), ("bytes", "right")]
    rows = []
    for device in gpu.devices:
        cells = [visible(device.name), number(device.launches), duration(device.kernels_ns)]
        cells += [duration(device.copies_ns), size(device.copy_bytes)]
        rows.append([*cells, *phrases.busy_texts(device, report.meta.wall_ns)])
    headings = [*columns, ("busy", "right"), ("idle", "right"), ("hidden communication", "right")]
    if rows:
        _table(console, headings, rows)
    if gpu.kernels:
        _title(console, "On the device")
        rows = [
            [
                phrases.name_text(k.name),
                k.kind,
                number(k.count),
                duration(k.gpu_time.sum),
                share(k.gpu_time.sum, gpu.work_ns),
            ]
            + [duration(value) for value in (k.gpu_time.mean, k.gpu_time.std)]
            for k in gpu.kernels
        ]
        columns = [("name", "left"), ("kind", "left"), ("count", "right"), ("total", "right"), ("share", "right")]
        _table(console, [*columns, ("mean", "right"), ("std", "right")], rows)
        _more(console, gpu.kernels_hidden, "more names")


def _operators(console: Console, report: Report) -> None:
    if not report.operators:
        return
    _title(
        console,
        "Operators",
        f"by {phrases.metric_name(report.sort)}{' inside themselves' if report.sort == 'cpu_time' else ''}",
    )
    gpu = any(row.gpu_time_ns for row in report.operators)
    alloc = any(row.alloc_bytes for row in report.operators)
    columns = [
        ("operator", "left"),
        ("calls", "right"),
        ("self", "right"),
        ("total", "right"),
        ("mean", "right"),
        ("std", "right"),
    ]
    columns += [("GPU", "right")] if gpu else []
    columns += [("allocated", "right")] if alloc else []
    rows = []
    for row in report.operators:
        t = row.cpu_time
        cells = [
            phrases.name_text(phrases.operator_text(row.name, in_table=True)),
            number(row.count),
            *(duration(v) for v in (t.self, t.sum, t.mean, t.std)),
        ]
        cells += [duration(row.gpu_time_ns)] if gpu else []
        cells += [size(row.alloc_bytes)] if alloc else []
        rows.append(cells)
    _table(console, columns, rows)
    _more(console, report.operators_hidden, "more operators")


def _modules(console: Console, report: Report) -> None:
    if not report.modules:
        return
    _title(console, "Modules", "with their submodules; backward counted where its forward ran")
    gpu = any(row.gpu_time_ns for row in report.modules)
    columns = [
        ("module", "left"),
        ("class", "left"),
        ("total", "right"),
        ("forward", "right"),
        ("backward", "right"),
        ("self", "right"),
    ]
    columns += [("GPU", "right")] if gpu else []
    rows = []
    for row in report.modules:
        cells = [phrases.name_text(row.name), _cut(visible(row.class_name))]
        cells += [duration(v) for v in (row.cpu_time_ns, row.forward_ns, row.backward_ns, row.self_ns)]
        rows.append(cells + ([duration(row.gpu_time_ns)] if gpu else []))
    _table(console, columns, rows)
    _more(console, report.modules_hidden, "more modules")


def _phases(console: Console, report: Report) -> None:
    if not report.phases:
        return
    _title(console, "Phases")
    total = report.totals.get("cpu_time")
    gpu = any(row.gpu_time_ns for row in report.phases)
    columns = [
        ("phase", "left"),
        ("CPU time", "right"),
        ("share", "right"),
        ("operators", "right"),
        ("allocated", "right"),
    ]
    columns += [("GPU", "right")] if gpu else []
    rows = []
    for row in report.phases:
        cells = [
            visible(row.name) or "(outside)",
            duration(row.cpu_time_ns),
            share(row.cpu_time_ns, total.sum if total else 0),
        ]
        cells += [number(row.operators), size(row.alloc_bytes)]
        rows.append(cells + ([duration(row.gpu_time_ns)] if gpu else []))
    _table(console, columns, rows)


def _memory(console: Console, report: Report) -> None:
    memory = report.memory
    if memory is None:
        return
    note = (
        f"{size(memory.allocated_bytes)} in {number(memory.allocations)} allocations, {size(memory.freed_bytes)} freed"
    )
    _title(console, "Tensor memory", note)
    for i, peak in enumerate(memory.peaks):
        detailed = i < _PEAKS_IN_DETAIL
        alive = "; alive at that moment:" if detailed else ""
        console.print(Text(f"  peak {size(peak.peak_bytes)} on {visible(peak.device)}{alive}"))
        for path in peak.holders if detailed else ():
            held = path.values["peak_live_bytes"]
            line = Text(f"      {share(held, peak.peak_bytes):>6}  {size(held):>9}  ")
            line.append(phrases.place_text(path.place), style="bold cyan")
            line.append(f"  {phrases.below_text(path, notes=False)}")
            line.truncate(console.width, overflow="ellipsis")
            console.print(line, no_wrap=True)


def _quality(console: Console, report: Report) -> None:
    _title(console, "Capture quality")
    console.print(
        Text(
            f"  {phrases.cost_text(report.cost)}"
            + (f", {size(report.cost.held_bytes)} held" if report.cost.held_bytes else "")
        )
    )
    if not report.losses:
        console.print(Text("  nothing lost", style="green"))
    for loss in report.losses:
        console.print(Padding(Text(phrases.loss_text(loss), style="yellow"), (0, 0, 0, 2)))


def _next(console: Console, report: Report) -> None:
    _title(console, "Next")
    for command in report.next_commands:
        console.print(Text("  " + visible(command)), soft_wrap=True)


def _cut(text: str, most: int = 28) -> str:
    """For columns that do not give way."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _more(console: Console, hidden: int, what: str) -> None:
    if hidden:
        console.print(Text(f"  {number(hidden)} {what}: --top N shows them", style="bright_black"))
