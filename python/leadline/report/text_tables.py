"""The tables of the text report: devices, operators, modules, phases, memory; and how every table is laid out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from leadline.names.kernels import kernel_words
from leadline.report import hardware_words, phrases
from leadline.report.model import Report
from leadline.report.source import visible
from leadline.units import duration, number, share, size

_PEAKS_IN_DETAIL = 2
_THREADS = 32  # rows of a table of threads; a job may have thousands


def title(console: Console, text: str, note: str = "") -> None:
    """A section begins; `note` says quietly what it shows."""
    line = Text("\n" + text, style="bold")
    if note:
        line.append(f"  {note}", style="not bold bright_black")
    console.print(line)


def table(
    console: Console,
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[str | Text]],
    *,
    between: str = "",
) -> None:
    """Columns are (heading, justify). Only the first one gives way where the window is narrow; at its front with
    `between`, which stands between the parts of its names. No rows, no table."""
    if not rows:
        return
    grid = Table(box=None, pad_edge=False, header_style="bright_black", padding=(0, 2, 0, 0))
    cells = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    others = sum(max(len(head), *(row[i].cell_len for row in cells)) + 2 for i, (head, _) in enumerate(columns) if i)
    room = max(console.width - others - 4, 16)
    for i, (heading, justify) in enumerate(columns):
        grid.add_column(
            heading,
            justify="right" if justify == "right" else "left",
            no_wrap=True,
            overflow="ellipsis",
            max_width=None if i else room,
            min_width=max(row[i].cell_len for row in cells) if i else None,
        )
    for row in cells:
        grid.add_row(*([phrases.end_of_name(row[0].plain, room, between), *row[1:]] if between else row))
    console.print(Padding(grid, (0, 0, 0, 2)))


class _OfThread(Protocol):
    @property
    def wall_ns(self) -> int: ...


Thread = TypeVar("Thread", bound=_OfThread)


def longest(threads: Sequence[Thread]) -> Sequence[Thread]:
    """As many as a table of threads shows: those that were there longest, in their order."""
    if len(threads) <= _THREADS:
        return threads
    kept = set(sorted(range(len(threads)), key=lambda at: -threads[at].wall_ns)[:_THREADS])
    return [thread for at, thread in enumerate(threads) if at in kept]


def shorter(console: Console, shown: int, of: int) -> None:
    """How many `longest` left out, if any."""
    if of > shown:
        said = f"  {number(of - shown)} more threads ran for less time: --format json lists them"
        console.print(Text(said, style="bright_black"))


def more(console: Console, hidden: int, what: str) -> None:
    """How many rows `--top` left out, if any."""
    if hidden:
        console.print(Text(f"  {number(hidden)} {what}: --top N shows them", style="bright_black"))


def devices(console: Console, report: Report) -> None:
    """Accelerators, and what ran on them."""
    gpu = report.gpu
    if gpu is None:
        return
    waited = f"threads waited {duration(gpu.sync_ns)} for devices" if gpu.sync_ns else ""
    title(console, "Devices", waited)
    columns = [("device", "left"), ("kernels", "right"), ("time", "right"), ("copies", "right"), ("bytes", "right")]
    rows = []
    for device in gpu.devices:
        cells = [visible(device.name), number(device.launches), duration(device.kernels_ns)]
        cells += [duration(device.copies_ns), size(device.copy_bytes)]
        rows.append([*cells, *phrases.busy_texts(device, report.meta.wall_ns)])
    headings = [*columns, ("busy", "right"), ("idle", "right"), ("hidden communication", "right")]
    if rows:
        table(console, headings, rows)
    if gpu.kernels:
        title(console, "On the device")
        rows = [
            [
                phrases.name_text(kernel_words(k.name)),
                k.kind,
                number(k.count),
                duration(k.gpu_time.sum),
                share(k.gpu_time.sum, gpu.work_ns),
            ]
            + [duration(value) for value in (k.gpu_time.mean, k.gpu_time.std)]
            for k in gpu.kernels
        ]
        columns = [("name", "left"), ("kind", "left"), ("count", "right"), ("total", "right"), ("share", "right")]
        table(console, [*columns, ("mean", "right"), ("std", "right")], rows)
        more(console, gpu.kernels_hidden, "more names")


def hardware(console: Console, report: Report) -> None:
    """What hardware counters said of kernels."""
    if report.gpu is None or not report.gpu.counters:
        return
    title(console, "Hardware counters", hardware_words.NOTE)
    heads, rows = hardware_words.hardware_table(report.gpu.counters)
    _named_rows(console, [heads[0], *map(hardware_words.short, heads[1:])], rows)


def links(console: Console, report: Report) -> None:
    """Copies between devices."""
    if report.gpu is None or not report.gpu.links:
        return
    title(console, "Between devices", hardware_words.LINKS_NOTE)
    _named_rows(console, *hardware_words.links_table(report.gpu.links))


def scratch(console: Console, report: Report) -> None:
    """Scratch memory that the driver took for kernels."""
    if report.gpu is None or not report.gpu.scratch:
        return
    title(console, "Scratch memory", hardware_words.SCRATCH_NOTE)
    _named_rows(console, *hardware_words.scratch_table(report.gpu.scratch))


def _named_rows(console: Console, heads: list[str], rows: list[list[str]]) -> None:
    """A table of figures behind a name."""
    table(console, [(heads[0], "left"), *((head, "right") for head in heads[1:])], rows)


def operators(console: Console, report: Report) -> None:
    """Operators by name."""
    if not report.operators:
        return
    title(console, "Operators", phrases.operators_note(report.sort))
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
        t = row.time
        cells = [
            phrases.name_text(phrases.operator_text(row.name, in_table=True)),
            number(row.count),
            *(duration(v) for v in (t.self, t.sum, t.mean, t.std)),
        ]
        cells += [duration(row.gpu_time_ns)] if gpu else []
        cells += [size(row.alloc_bytes)] if alloc else []
        rows.append(cells)
    table(console, columns, rows)
    more(console, report.operators_hidden, "more operators")


def functions(console: Console, report: Report) -> None:
    """CPU time by function, from samples."""
    if not report.functions:
        return
    title(console, "CPU time by function", phrases.samples_text(report))
    whole = report.totals["cpu_sample"].sum
    times = [("self", "right"), ("", "right"), ("total", "right"), ("", "right")]
    columns = [("function", "left"), ("hottest line", "left"), *times]
    rows = []
    for row in report.functions:
        cells = [text for ns in (row.self_ns, row.total_ns) for text in (duration(ns), share(ns, whole))]
        rows.append([phrases.function_text(row), _cut_front(phrases.function_place(row)), *cells])
    table(console, columns, rows, between="::")
    more(console, report.functions_hidden, "more functions")


def waiting(console: Console, report: Report) -> None:
    """What threads waited for, by samples."""
    if not report.waiting:
        return
    title(console, "Waiting", phrases.WAITING_NOTE)
    threads = longest(report.waiting)
    states = phrases.waits_shown(report.waiting)
    columns = [("thread", "left"), ("wall", "right"), ("running", "right")]
    columns += [(phrases.WAIT_NAMES[state], "right") for state in states]
    rows = []
    for one in threads:
        values = (one.ran_ns, *(one.states_ns.get(state, 0) for state in states))
        rows.append(
            [phrases.thread_text(one), duration(one.wall_ns)]
            + [share(value, one.wall_ns) if value else "-" for value in values]
        )
    table(console, columns, rows)
    shorter(console, len(threads), len(report.waiting))
    for one in threads:
        if lines := phrases.waiting_lines(one):
            whose = "" if len(report.waiting) == 1 else f"{phrases.thread_text(one)}: "
            console.print(Padding(Text(f"{whose}{lines}", style="bright_black"), (0, 0, 0, 2)))
    if hidden := phrases.waiting_hidden(report.waiting_hidden):
        console.print(Text(f"  {hidden}", style="bright_black"))


def counters(console: Console, report: Report) -> None:
    """Counters, and the line with most of each."""
    if not report.counters:
        return
    title(console, "Counters", phrases.COUNTERS_NOTE)
    columns = [("counter", "left"), ("total", "right"), ("per CPU second", "right"), ("most on", "left")]
    table(console, columns, [phrases.counter_cells(one) for one in report.counters])
    if said := phrases.instructions_text(report.counters):
        console.print(Text(f"  {said}", style="bright_black"))


def modules(console: Console, report: Report) -> None:
    """Modules by qualified name."""
    if not report.modules:
        return
    title(console, "Modules", "with their submodules; backward counted where its forward ran")
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
        cells += [duration(v) for v in (row.time_ns, row.forward_ns, row.backward_ns, row.self_ns)]
        rows.append(cells + ([duration(row.gpu_time_ns)] if gpu else []))
    table(console, columns, rows, between=".")
    more(console, report.modules_hidden, "more modules")


def phases(console: Console, report: Report) -> None:
    """Phases; the rows add up to the whole."""
    if not report.phases:
        return
    title(console, "Phases", phrases.base_text(report, "time"))
    total = report.totals.get("time")
    gpu = any(row.gpu_time_ns for row in report.phases)
    columns = [
        ("phase", "left"),
        ("time", "right"),
        ("share", "right"),
        ("operators", "right"),
        ("allocated", "right"),
    ]
    columns += [("GPU", "right")] if gpu else []
    rows = []
    for row in report.phases:
        cells = [
            visible(row.name) or "(outside)",
            duration(row.time_ns),
            share(row.time_ns, total.sum if total else 0),
        ]
        cells += [number(row.operators), size(row.alloc_bytes)]
        rows.append(cells + ([duration(row.gpu_time_ns)] if gpu else []))
    table(console, columns, rows)


def memory(console: Console, report: Report) -> None:
    """Tensor memory in all, and who held it at each device's peak."""
    memory = report.memory
    if memory is None:
        return
    note = (
        f"{size(memory.allocated_bytes)} in {number(memory.allocations)} allocations, {size(memory.freed_bytes)} freed"
    )
    title(console, "Tensor memory", note)
    for one in memory.allocators:
        console.print(Text(f"  {phrases.reserved(one)}"))
    for i, peak in enumerate(memory.peaks):
        detailed = i < _PEAKS_IN_DETAIL
        alive = "; alive at that moment:" if detailed else ""
        console.print(Text(f"  peak {size(peak.peak_bytes)} on {visible(peak.device)}{alive}"))
        for path in peak.holders if detailed else ():
            held = path.values["peak_live_bytes"]
            line = Text(f"      {share(held, peak.peak_bytes):>6}  {size(held):>9}  ")
            line.append(phrases.place_text(path.place), style="bold cyan")
            line.append(f"  {phrases.below_text(path, notes=False, width=console.width - line.cell_len - 2)}")
            line.truncate(console.width, overflow="ellipsis")
            console.print(line, no_wrap=True)


def programs(console: Console, report: Report) -> None:
    """What compiled programs hold in their temporary memory, by their compiler's plan."""
    if not report.programs:
        return
    title(console, "Memory inside compiled programs", "planned by the compiler, for one run")
    for program in report.programs:
        console.print(Text(phrases.program_memory(program)))
        for held in program.buffers:
            line = Text(f"      {share(held.bytes, program.temporaries_bytes):>6}  {size(held.bytes):>9}  ")
            line.append(phrases.place_text(held.place) if held.place else "", style="bold cyan")
            line.append(f"  {visible(held.operation)}")
            line.truncate(console.width, overflow="ellipsis")
            console.print(line, no_wrap=True)


def _cut(text: str, most: int = 28) -> str:
    """For columns that do not give way."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _cut_front(text: str, most: int = 32) -> str:
    """Of a file and line the end says more."""
    return text if len(text) <= most else "…" + text[1 - most :]
