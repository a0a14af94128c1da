"""What the frame under the cursor is, whose line it is, and what it cost."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from leadline.analysis.scopes import Scopes
from leadline.report.phrases import metric_name, name_text
from leadline.report.source import visible
from leadline.terminal.view import TreeView, ViewNode, frame_label
from leadline.units import in_unit, number

_MOST_METRICS = 7
_MOST_NODES = 20_000  # whose single measurements are put together; more would make the cursor stick


def details(view: TreeView, node: ViewNode, scopes: Scopes) -> list[Text | Table]:
    """For the panel below the tree."""
    tree, row = view.tree, node.row
    frame = int(tree.frame_of[row])
    about = Text(no_wrap=True, overflow="ellipsis")
    if node.parent is not None:
        about.append(f"{tree.node(row).kind}  ", "dim")
    about.append(view.label(node), "bold")
    if len(node.at) > 1 and node.parent is not None:
        about.append(f"  {number(len(node.at))} call paths", "dim")
    lines: list[Text | Table] = [about]
    file = tree.text("file", frame)
    user = int(scopes.user[row])
    if file:
        line = int(tree.frames["line"][frame])
        lines.append(Text(visible(f"{file}:{line}" if line else file), "dim", no_wrap=True, overflow="ellipsis"))
    elif user >= 0:
        label = frame_label(tree, int(tree.frame_of[user]))
        lines.append(Text(f"called from {label}", "dim", no_wrap=True, overflow="ellipsis"))
    lines.append(_costs(view, node))
    return lines


def _costs(view: TreeView, node: ViewNode) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("", "total", "self", "times", "mean", "min", "max", "std"):
        table.add_column(title, justify="left" if not title else "right", no_wrap=True)
    shown = 0
    few = len(node.rows) <= _MOST_NODES
    for info in view.tree.measured:
        name = str(info.kind)
        own = view.tree.exclusive(name)
        total = view.value_of(node, name) if info.additive else 0
        stat = own.total(node.rows) if few else None
        measured = stat is not None and stat.count > 0
        if not (total or measured) or shown == _MOST_METRICS:
            continue
        shown += 1
        cells = [in_unit(total, info.unit) if info.additive else ""]
        if measured and stat is not None:
            cells.append(in_unit(stat.sum, info.unit) if info.additive else "")
            spread = (stat.mean, stat.min, stat.max, stat.std) if stat.count else ()
            cells += [number(stat.count), *(in_unit(value, info.unit) for value in spread)]
        table.add_row(name_text(metric_name(name)), *cells)
    return table
