"""The summary as GitHub-flavoured Markdown, which experiment trackers show too."""

from __future__ import annotations

import time
from collections.abc import Sequence

from leadline.report.markup import code, escaped, table
from leadline.report.training.efficiency import efficiency
from leadline.report.training.memory import memory
from leadline.report.training.model import Change, TrainingSummary
from leadline.steps.of_profile import NOTHING_REPEATS
from leadline.units import change, duration, number, share, size
from leadline.work.operators import COMPILATION


def render(summary: TrainingSummary) -> str:
    """The whole page; ends with a newline."""
    parts = [_run(summary), _steps(summary), _wall(summary), _classes(summary)]
    parts += [efficiency(summary), _hot(summary), memory(summary), _rest(summary), _findings(summary)]
    parts.append(_changes(summary))
    return "\n\n".join(part for part in parts if part) + "\n"


def _run(summary: TrainingSummary) -> str:
    if not summary.started_at_ns:  # a trace of others, or a profile without its side file
        what = f"{escaped(', '.join(summary.hardware))}; {summary.schedule or 'no window'}"
        rank = f"Rank {summary.rank} of {summary.world_size}; " if summary.world_size > 1 else ""
        return f"## Summary of {code(summary.profile)}\n\n{rank}{what}."
    started = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(summary.started_at_ns / 1e9))
    ranks = f"rank {summary.rank} of {summary.world_size}" if summary.world_size > 1 else "one rank"
    lines = [
        f"## Leadline training summary: {code(summary.program) or 'program'}",
        "",
        f"{started} on {escaped(summary.host)}, {ranks}; {escaped(', '.join(summary.hardware))}; window: "
        f"{summary.schedule}; profile {code(summary.profile)}.",
    ]
    if summary.missing_ranks:
        lines += ["", f"**Without rank {_ranges(summary.missing_ranks)}: its end was not recorded.**"]
    if summary.absent_ranks:
        lines += ["", f"**Without rank {_ranges(summary.absent_ranks)}: it has no file in this folder.**"]
    return "\n".join(lines)


def _steps(summary: TrainingSummary) -> str:
    steps = summary.steps
    if not steps.count:
        return f"### Steps\n\nNo step is known: {NOTHING_REPEATS}."
    recorded = _ranges(steps.recorded) or "none: no window was opened"
    row = [
        f"{steps.count} ({steps.first} to {steps.last})",
        recorded,
        duration(steps.mean_ns),
        *(duration(one) if one else "not known" for one in (steps.median_ns, steps.p95_ns)),
    ]
    row += [duration(steps.min_ns), duration(steps.max_ns), duration(steps.std_ns)]
    heads = ["steps", "recorded", "mean", "median", "p95", "least", "most", "std"]
    between = f"\n\nBetween steps (evaluation, checkpoints): {duration(steps.between_ns)}." if steps.between_ns else ""
    left_out = (
        f"\n\nCalls and their time were measured in {number(steps.measured)} of them, so that measuring costs no more "
        "than its budget; the times here are of all."
        if steps.measured < steps.count
        else ""
    )
    return "### Steps\n\n" + table(heads, [row]) + between + left_out


def _wall(summary: TrainingSummary) -> str:
    if not summary.walls:
        return ""
    rows = []
    for name, wall in summary.walls:
        parts = (wall.compute_ns, wall.exposed_communication_ns, wall.exposed_copy_ns, wall.idle_ns)
        rows.append([escaped(name), duration(wall.window_ns)])
        rows[-1] += [f"{duration(part)} ({share(part, wall.window_ns)})" for part in parts]
        rows[-1].append(duration(wall.overlapped_ns))
    heads = ["device", "wall", "compute", "exposed communication", "exposed copy", "idle", "hidden communication"]
    note = "Wall time of the recorded steps. Compute, exposed communication, exposed copy and idle add up to it."
    if summary.metric == "time":
        note += " On the CPU, idle is time outside operators: Python, and waiting for others."
    return f"### Where the time goes\n\n{note}\n\n" + table(heads, rows)


def _classes(summary: TrainingSummary) -> str:
    if not summary.shares:
        return ""
    total = _worked_ns(summary)
    compiled = sum(item.time_ns for item in summary.shares) - total
    what = "Device time" if summary.metric == "gpu_time" else "Time of operators on the CPU"
    rows = [
        [item.name, duration(item.time_ns), share(item.time_ns, total), number(item.calls)]
        for item in summary.shares
        if item.name != COMPILATION
    ]
    steps = summary.steps
    over = (
        "the whole run" if steps.measured >= steps.count else f"the {number(steps.measured)} steps that were measured"
    )
    note = f"{what} of {over}, summed over streams and threads: {duration(total)}. Each nanosecond counts once."
    if compiled:
        note += f" Compiling ran operators for another {duration(compiled)}, which are in no row."
    return f"### By class of work\n\n{note}\n\n" + table(["class", "time", "share", "calls"], rows)


def _worked_ns(summary: TrainingSummary) -> int:
    """Time of all classes of work; to compile is none."""
    return sum(item.time_ns for item in summary.shares if item.name != COMPILATION)


def _hot(summary: TrainingSummary) -> str:
    if not summary.hot:
        return ""
    total = _worked_ns(summary)
    rows = [
        [
            code(item.name[:120]),
            duration(item.time_ns),
            share(item.time_ns, total),
            number(item.calls),
            code(item.place),
            code(item.module),
        ]
        for item in summary.hot
    ]
    title = "Top kernels" if summary.metric == "gpu_time" else "Top operators"
    return f"### {title}\n\n" + table(["name", "time", "share", "calls", "line", "module"], rows)


def _rest(summary: TrainingSummary) -> str:
    lines = []
    if summary.data_ns:
        lines.append(f"- Threads spent {duration(summary.data_ns)} in data loading.")
    lines += [f"- Not measured: {escaped(loss)}" for loss in summary.losses]
    return "### Data, losses\n\n" + "\n".join(lines) if lines else ""


def _findings(summary: TrainingSummary) -> str:
    if not summary.findings:
        return ""
    lines = "\n".join(f"- {escaped(one)}" for one in summary.findings)
    return f"### Findings\n\n{lines}\n\n`leadline analyze {summary.profile}` shows their evidence."


def _changes(summary: TrainingSummary) -> str:
    if not summary.changes:
        return ""
    return "### Since the last summary in this folder\n\n" + table(
        ["figure", "before", "now", "change"], change_rows(summary.changes)
    )


def change_rows(changes: Sequence[Change]) -> list[list[str]]:
    """A row per figure that differs: its name, before, now, and by how much."""
    rows = []
    for one in changes:
        show = duration if one.name.endswith("_ns") else size if one.name.endswith("_bytes") else number
        name = one.name.removesuffix("_ns").removesuffix("_bytes").replace("_", " ")
        gone = change(one.now / one.before - 1) if one.before else ""
        rows.append([escaped(name), show(one.before), show(one.now), gone])
    return rows


def _ranges(numbers: Sequence[int]) -> str:
    """5 to 7, 12: runs of neighbours."""
    runs: list[list[int]] = []
    for step in numbers:
        if runs and step == runs[-1][1] + 1:
            runs[-1][1] = step
        else:
            runs.append([step, step])
    return ", ".join(str(low) if low == high else f"{low} to {high}" for low, high in runs)
