"""The critical path as a table: which tasks the step time is made of."""

from __future__ import annotations

import numpy as np

from leadline.units import duration, percent
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import TaskKind
from leadline.whatif.predict import Report

_ROWS = 25
_NAME = 70
_KIND = {TaskKind.GPU: "GPU", TaskKind.CPU: "CPU", TaskKind.DATA: "data loading", TaskKind.COMM: "communication"}


def describe_critical_path(graph: Graph, report: Report, *, markdown: bool = False) -> str:
    """Time on the path by kind, then by name. A prediction's own path when the report has exactly one."""
    title, result = "replayed step", report.replay
    if len(report.scenarios) == 1 and report.scenarios[0].graph is not None:
        prediction = report.scenarios[0]
        title, result, graph = prediction.title, prediction.result, report.scenarios[0].graph or graph
    if result is None:
        return ""
    path = result.critical_path
    start, end = result.start_ns[path], result.end_ns[path]
    # a task is on the path until the next one starts
    spent = np.maximum(np.append(start[1:], end[-1:]) - start, 0) if path.size else np.zeros(0, dtype=np.int64)
    total = max(int(spent.sum()), 1)
    kinds, names = graph.column("kind")[path], graph.column("name")[path]
    lines = [f"## Critical path of {title}" if markdown else f"Critical path of {title}:", ""]
    by_kind = {_KIND[TaskKind(kind)]: int(spent[kinds == kind].sum()) for kind in np.unique(kinds).tolist()}
    parts = [f"{name} {percent(time / total)}" for name, time in sorted(by_kind.items(), key=lambda item: -item[1])]
    lines += [f"{path.size} tasks, {duration(total)}: {', '.join(parts)}.", ""]
    if markdown:
        lines += ["| time | share | tasks | kind | name |", "|---:|---:|---:|---|---|"]
    totals = np.bincount(names, weights=spent) if path.size else np.zeros(0)
    for row in np.argsort(-totals, kind="stable")[:_ROWS].tolist():
        if totals[row] <= 0:
            break
        mine = names == row
        name = graph.names[row] if len(graph.names[row]) <= _NAME else graph.names[row][: _NAME - 3] + "..."
        kind = _KIND[TaskKind(int(kinds[mine][0]))]
        cells = (duration(totals[row]), percent(totals[row] / total), str(int(mine.sum())), kind, name)
        if markdown:
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        else:
            lines.append(f"{cells[0]:>9}  {cells[1]:>6}  {cells[2]:>6}x  {cells[3]:<13}  {cells[4]}")
    return "\n".join(lines) + "\n"
