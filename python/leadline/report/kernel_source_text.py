"""Heat on the source of kernels for a terminal, and as JSON."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.console import Console
from rich.text import Text

from leadline.profiles.makers import in_makers_words
from leadline.profiles.records import Device
from leadline.report import text_tables
from leadline.report.kernel_source import KernelHeat, LineHeat, Reason, reason_words
from leadline.report.source import short_names, visible
from leadline.units import duration, share

_REASONS = 3
_NARROWEST = 60
_BAR = 8


def render_json(kernels: Sequence[KernelHeat]) -> str:
    """As plain objects; the names are those of the data model."""
    return json.dumps([dataclasses.asdict(kernel) for kernel in kernels], indent=1) + "\n"


def render_text(
    kernels: Sequence[KernelHeat], width: int, top: int, *, colour: bool = False, devices: Iterable[Device] = ()
) -> str:
    """`top` lines and instructions of each kernel, in the words of the devices' maker."""
    unit = in_makers_words(devices, "warp")
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
    for kernel in kernels[:top]:
        _kernel(console, kernel, top, unit)
    if len(kernels) > top:
        console.print(Text(f"\\nand {len(kernels) - top} more kernels (--top N, --focus NAME)", style="bright_black"))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).lstrip("\n") + "\n"


def _kernel(console: Console, kernel: KernelHeat, top: int, unit: str) -> None:
    note = f"{kernel.samples:,} samples of its instructions"
    text_tables.title(console, visible(kernel.name), note)
    said = [f"{duration(kernel.gpu_ns)} on the device"] if kernel.gpu_ns else []
    if kernel.issued:
        said.append(f"issued in {_share(kernel.issued, kernel.samples)} of its samples")
    if kernel.latency:
        said.append(f"in {_share(kernel.latency, kernel.samples)} no other {unit} was issued either")
    if said:
        console.print(Text("  " + ", ".join(said)))
    for reason in kernel.reasons[:_REASONS]:
        console.print(Text(f"  {_share(reason.samples, kernel.samples):>6}  {visible(reason_words(reason))}"))
    if kernel.lines:
        _lines(console, kernel, top)
    else:
        console.print(
            Text("  no lines of its code are known (nvcc -lineinfo gives them); instructions by their offset:")
        )
    if kernel.instructions:
        rows = [
            [
                _share(one.samples, kernel.samples),
                f"{one.offset:#06x}",
                visible(one.text) if not one.text.startswith("+0x") else "",
                _main_reason(one.reasons),
                f"{visible(one.file.rpartition('/')[2])}:{one.line}" if one.file else "",
            ]
            for one in kernel.instructions[:top]
        ]
        columns = [
            ("share", "right"),
            ("offset", "right"),
            ("instruction", "left"),
            ("mostly", "left"),
            ("line", "left"),
        ]
        console.print()
        text_tables.table(console, columns, rows)


def _lines(console: Console, kernel: KernelHeat, top: int) -> None:
    """The hottest lines, file by file, in the order of the file."""
    hottest = kernel.lines[:top]
    names = short_names(line.file for line in hottest)
    most = max(line.samples for line in hottest)
    for file, lines in groupby(sorted(hottest, key=lambda line: (line.file, line.line)), key=lambda line: line.file):
        console.print(Text(f"\n  {visible(names[file])}", style="bold"))
        for line in lines:
            console.print(_line(line, kernel.samples, most), no_wrap=True, overflow="ellipsis")


def _line(line: LineHeat, whole: int, most: int) -> Text:
    bar = "█" * max(1, round(_BAR * line.samples / most)) if line.samples else ""
    text = Text(f"  {_share(line.samples, whole):>6} ")
    text.append(f"{bar:<{_BAR}} ", style="red")
    text.append(f"{line.line:>5}  ", style="bright_black")
    text.append(f"{_main_reason(line.reasons):<20} ", style="yellow")
    text.append(visible(line.text) if line.text else visible(f"({line.function})"))
    return text


def _main_reason(reasons: Sequence[Reason]) -> str:
    return visible(reasons[0].name.replace("_", " ")) if reasons else ""


def _share(part: int, whole: int) -> str:
    return share(part, whole) if whole else "-"
