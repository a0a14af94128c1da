"""The ranks of a folded profile on a terminal and in Markdown."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from leadline.report import text_tables
from leadline.report.markup import escaped
from leadline.report.markup import table as markdown_table
from leadline.report.ranks import Ranks, Spread, spread_name
from leadline.report.source import visible
from leadline.units import in_unit, percent

_HEADS = ("", "mean", "spread", "least", "most")
_MOST_LATE = 10


def headline(ranks: Ranks) -> str:
    """`30 of 32 ranks on 4 machines; missing: 3, 8; every time below is the sum over ranks`."""
    of = f" of {ranks.world_size}" if ranks.world_size > ranks.count else ""
    machines = f" on {ranks.hosts} machines" if ranks.hosts > 1 else ""
    parts = [f"{ranks.count}{of} rank{'s' if ranks.count != 1 or of else ''}{machines}"]
    if ranks.missing:
        parts.append(f"missing: {ranks.missing}")
    if ranks.partial:
        parts.append(f"up to their last segment: {ranks.partial}")
    parts.append("all other times are sums over ranks")
    return "; ".join(parts)


def verdicts(ranks: Ranks) -> list[str]:
    """Who is late, what is lawful, or that nobody is."""
    made = [*ranks.arrival]
    made += [one.sentence[0].upper() + one.sentence[1:] for one in ranks.late[:_MOST_LATE]]
    if len(ranks.late) > _MOST_LATE:
        made.append(f"{len(ranks.late) - _MOST_LATE} more ranks are late: the JSON report names all.")
    if not ranks.late and not ranks.arrival and ranks.compared:
        made.append("No rank works noticeably longer than its peers.")
    return [*made, *ranks.lawful]


def spread_text(one: Spread) -> str:
    """`with all below it on 4 ranks: 0.9 s (rank 3) to 1.4 s (rank 2), ±12.0%`: a path on the ranks that have it."""
    wide = f", ±{percent(one.std / one.mean)}" if one.mean else ""
    least, most = in_unit(one.min, one.unit), in_unit(one.max, one.unit)
    if one.ranks == 1:
        return visible(f"on {one.max_rank} alone")
    return visible(f"total on {one.ranks} ranks: {least} ({one.min_rank}) to {most} ({one.max_rank}){wide}")


def cells(one: Spread) -> list[str]:
    """A row of the table."""
    spread = f"±{percent(one.std / one.mean)}" if one.mean else "n/a"
    least, most = in_unit(one.min, one.unit), in_unit(one.max, one.unit)
    return [
        spread_name(one.name),
        in_unit(one.mean, one.unit),
        spread,
        f"{least}  {one.min_rank}",
        f"{most}  {one.max_rank}",
    ]


def render_ranks(console: Console, ranks: Ranks | None) -> None:
    """The section of the text report."""
    if ranks is None:
        return
    text_tables.title(console, "Ranks", visible(headline(ranks)))
    columns = list(zip(_HEADS, ("left", "right", "right", "left", "left"), strict=True))
    text_tables.table(console, columns, [[visible(cell) for cell in cells(one)] for one in ranks.spreads])
    for sentence in verdicts(ranks):
        console.print(
            Padding(Text(visible(sentence), style="yellow" if ranks.late or ranks.arrival else "green"), (0, 0, 0, 2))
        )


def markdown_ranks(ranks: Ranks | None) -> str:
    """The section of the Markdown report; empty without ranks."""
    if ranks is None:
        return ""
    rows = [[escaped(cell) for cell in cells(one)] for one in ranks.spreads]
    lines = "\n".join(f"- {escaped(sentence)}" for sentence in verdicts(ranks))
    note = headline(ranks)
    heads = ["part", *_HEADS[1:]]
    return f"### Ranks\n\n{escaped(note[0].upper() + note[1:])}.\n\n{markdown_table(heads, rows)}\n\n{lines}".rstrip()
