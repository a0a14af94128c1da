"""What event tools have found, as text: tables, small curves and heat maps, and what was lost on the way."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from leadline._dataclass import dataclass
from leadline.profiles import Profile
from leadline.report.source import visible
from leadline.report.text_tables import more, table, title
from leadline.units import in_unit, number, percent

_BLOCKS = " ▁▂▃▄▅▆▇█"
_SHADES = " ░▒▓█"
_HEAT_ROWS = 24
_PATH_CHARACTERS = 48


@dataclass(frozen=True)
class ToolResult:
    """What one tool has left in one process."""

    process: str
    found: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.found.get("tool", "?"))


def tool_results(profile: Profile, name: str = "") -> list[ToolResult]:
    """Of all processes, in order; only those of one tool where `name` is given."""
    results = []
    records = [record for record in profile.meta.get("processes") or [] if record.get("tools")]
    found = [(record, one) for record in records for one in record["tools"] if isinstance(one, dict)]
    at_work = [id(record) for record, one in found if _saw(one)] or [id(record) for record in records[:1]]
    shown = [pair for pair in found if id(pair[0]) in at_work]
    several = len({id(record) for record, _ in shown}) > 1
    for record, one in shown:
        rank = record.get("rank", -1)
        label = f"rank {rank}" if isinstance(rank, int) and rank >= 0 else f"pid {record.get('pid')}"
        if parent := record.get("forked_from"):
            label = f"{label}, forked from {parent}"
        results.append(ToolResult(label if several else "", one))
    return [one for one in results if not name or one.name == name]


def _saw(found: Mapping[str, Any]) -> bool:
    """Whether its process is worth a place: of those that a program starts most run nothing that a tool looks at."""
    return any(found.get(what) for what in ("rows", "launches", "problem"))


def tools_text(results: Iterable[ToolResult], width: int, top: int, *, colour: bool = False) -> str:
    """As `render_tools` prints it."""
    stream = io.StringIO()
    system: Literal["standard"] | None = "standard" if colour else None
    render_tools(
        Console(file=stream, width=width, force_terminal=colour, color_system=system, highlight=False), results, top
    )
    return stream.getvalue()


def render_tools(console: Console, results: Iterable[ToolResult], top: int) -> None:
    """Everything the tools said."""
    for result in results:
        _render(console, result, top)


def _render(console: Console, result: ToolResult, top: int) -> None:
    found = result.found
    note = ", ".join(part for part in (result.process, _seen(found)) if part)
    title(console, f"Tool {visible(result.name)}", note)
    if found.get("problem"):
        console.print(Text(f"  The tool was stopped: {visible(str(found['problem']))}. Its results until then follow."))
    for what, count in (found.get("lost") or {}).items():
        console.print(Text(f"  Not seen: {number(count)} {visible(str(what))}; sums are lower bounds."))
    if found.get("first"):
        console.print(Text(f"  First: {visible(str(found['first']))}"))
    outputs = found.get("outputs") or []
    if found.get("nothing"):
        console.print(Text(f"  It saw no events: {visible(str(found['nothing']))}."))
        outputs = [one for one in outputs if one.get("kind") == "text"]
    elif not outputs and not found.get("problem") and not found.get("first"):
        console.print(Text("  It has no result."))
    for output in outputs:
        _OUTPUTS.get(output.get("kind"), _unknown)(console, output, top)


def _seen(found: Mapping[str, Any]) -> str:
    parts = [f"backend {'+'.join(found.get('backends') or [])}"]
    if found.get("range"):
        parts.append(f"only {found['range']}")
    return ", ".join(parts)


def _table(console: Console, output: Mapping[str, Any], top: int) -> None:
    note = str(output.get("note") or "")
    console.print(Text(f"\n  {visible(str(output['name']))}" + (f" ({note})" if note else "")))
    columns, rows = output["columns"], output["rows"]
    shown = rows[:top]
    cells = [_cells(row, columns) for row in shown]
    heads = [
        (column["name"], "right" if any(isinstance(row[at], int | float) for row in shown) else "left")
        for at, column in enumerate(columns)
    ]
    if cells:
        table(console, heads, cells)
    else:
        console.print(Text("    no rows"))
    more(console, int(output.get("rows_in_all", len(rows))) - len(shown), "further rows")


def _cells(row: Sequence[Any], columns: Sequence[Mapping[str, Any]]) -> list[str]:
    """Texts; a path leaves out what the first cell says, and is cut in the middle where it is long."""
    texts = [_cell(value, column["unit"]) for value, column in zip(row, columns, strict=False)]
    for at, value in enumerate(row):
        if at and isinstance(value, Mapping):
            path = texts[at].removesuffix(f" → {texts[0]}")
            half = _PATH_CHARACTERS // 2
            texts[at] = path if len(path) <= _PATH_CHARACTERS else f"{path[:half]}…{path[-half:]}"
    return texts


def _cell(value: Any, unit: str) -> str:
    if value is None:
        return "n/a"
    if isinstance(value, Mapping):
        return visible(str(value.get("short") or " → ".join(value.get("path") or []) or "unknown"))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return visible(str(value))
    if unit == "%":
        return percent(value / 100)
    return in_unit(value, unit) if unit in ("ns", "bytes") else number(value)


def _curve(console: Console, output: Mapping[str, Any], top: int) -> None:
    console.print(Text(f"\n  {visible(str(output['name']))}"))
    width = max(20, min(80, console.width - 40))
    for name, values in list(output["series"].items())[:top]:
        known = [value or 0 for value in values]
        if not known:
            continue
        peak = max(known)
        label = _cell(peak, str(output.get("unit", "")))
        line = Text(f"    {_line(known, width)}  {visible(name)}, most {label}")
        console.print(line, no_wrap=True, overflow="ellipsis")


def _line(values: Sequence[float], width: int) -> str:
    """One character for each part of the curve, as high as its largest value."""
    peak = max(values) or 1
    width = min(width, len(values))
    parts = [
        values[at * len(values) // width : max((at + 1) * len(values) // width, at * len(values) // width + 1)]
        for at in range(width)
    ]
    return "".join(_BLOCKS[round(max(part) / peak * 8)] for part in parts)


def _heat(console: Console, output: Mapping[str, Any], top: int) -> None:
    what = f"{output.get('row_name', '')} by {output.get('column_name', '')}".strip()
    console.print(Text(f"\n  {visible(str(output['name']))} ({what}; darker is more)"))
    cells = output["cells"]
    peak = max((value or 0 for row in cells for value in row), default=0) or 1
    width = max(20, min(80, console.width - 40))
    for label, row in list(zip(output["rows"], cells, strict=False))[:_HEAT_ROWS]:
        known = [value or 0 for value in row]
        shrunk = min(width, len(known))
        parts = [
            known[at * len(known) // shrunk : max((at + 1) * len(known) // shrunk, at * len(known) // shrunk + 1)]
            for at in range(shrunk)
        ]
        line = "".join(_SHADES[min(4, -(-int(max(part) * 4) // int(peak)) if max(part) else 0)] for part in parts)
        console.print(Text(f"    {visible(label)[:24]:>24} {line}"))
    more(console, max(0, len(cells) - _HEAT_ROWS), "further rows in the file")


def _text(console: Console, output: Mapping[str, Any], top: int) -> None:
    for line in str(output.get("text", "")).split("\n"):
        console.print(Text(f"  {visible(line)}"))


def _unknown(console: Console, output: Mapping[str, Any], top: int) -> None:
    console.print(Text(f"  An output of the kind {visible(str(output.get('kind')))}, which this release cannot show."))


_OUTPUTS = {"table": _table, "curve": _curve, "heat": _heat, "text": _text}
