"""A profile printed as text in the notation of `build.py`: what a test compares and what a person can read in a
failure."""

from __future__ import annotations

from collections.abc import Iterable

from leadline.profiles.measures import Stat
from leadline.profiles.profile import Profile
from leadline.profiles.tree import Node, metric_kind
from leadline.schema import TABLES, MetricKind

_OWN_COLUMNS = {
    table: tuple(column.name for column in TABLES[table].columns if column.name not in ("node", "name", "process"))
    for table in ("processes", "threads")
}


def draw(
    profile: Profile,
    metrics: Iterable[str | MetricKind] = (),
    *,
    inclusive: bool = False,
    devices: bool = False,
    facts: bool = False,
    ordered: bool = False,
) -> str:
    """The tree, one line per node, the root left out; lines end with a newline.

    `metrics`: print these, as sum or sum/count; `inclusive` rolls them up, `devices` keeps devices and streams apart.
    `facts`: print process, thread and frame columns too. `ordered`: sort siblings by their line, so that row order does
    not show.
    """
    kinds = [metric_kind(metric) for metric in metrics]
    rows = _fact_rows(profile) if facts else {}
    places = sorted(set(_places(profile))) if devices else [(None, None)]

    def line(node: Node) -> str:
        words = [_text(node)]
        cells = []
        for kind in kinds:
            for device, stream in places:
                measure = node.inclusive if inclusive else node.exclusive
                stat = measure(kind, device, stream)
                if stat.count:
                    cells.append(f"{kind}{_place(device, stream)}={_value(stat)}")
        if facts:
            cells += rows.get(node.row, [])
            cells += [f"{name}={value}" for name, value in _frame_facts(node) if value]
        if cells:
            words.append("| " + " ".join(cells))
        return " ".join(words)

    lines = []
    top = profile.tree.root.children
    stack = [(node, 0) for node in reversed(sorted(top, key=line) if ordered else top)]
    while stack:
        node, depth = stack.pop()
        lines.append("  " * depth + line(node) + "\n")
        children = sorted(node.children, key=line) if ordered else node.children
        stack += [(child, depth + 1) for child in reversed(children)]
    return "".join(lines)


def _text(node: Node) -> str:
    module = f" [{node.module}]" if node.module else ""
    where = f" @ {node.file}:{node.line}" if node.file and node.line else f" @ {node.file}" if node.file else ""
    return f"{node.kind} {node.name}{module}{where}"


def _value(stat: Stat) -> str:
    return str(stat.sum) if stat.count == 1 else f"{stat.sum}/{stat.count}"


def _place(device: int | None, stream: int | None) -> str:
    if device is None or device == -1:
        return ""
    return f"@{device}" if stream is None or stream == -1 else f"@{device}:{stream}"


def _places(profile: Profile) -> list[tuple[int | None, int | None]]:
    metrics = profile.table("metrics")
    return list(zip(metrics["device"].tolist(), metrics["stream"].tolist(), strict=True))


def _fact_rows(profile: Profile) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for table, names in _OWN_COLUMNS.items():
        columns = profile.table(table)
        for row, node in enumerate(columns["node"].tolist()):
            found.setdefault(node, []).extend(f"{name}={columns[name][row]}" for name in names)
    return found


def _frame_facts(node: Node) -> list[tuple[str, str]]:
    detail = "" if node.kind == "process" else node.tree.text("detail", node.frame)  # a process's repeats its columns
    return [("first_line", str(node.first_line or "")), ("address", str(node.address or "")), ("detail", detail)]
