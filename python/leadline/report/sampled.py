"""Counters and waits of a report, in words: lines instead of nodes."""

from __future__ import annotations

from leadline.analysis import Analysis
from leadline.analysis.columns import Mask
from leadline.analysis.counters import counted
from leadline.analysis.waiting import thread_waits
from leadline.report.model import Counter, CounterLine, ThreadWaiting, WaitingLine
from leadline.report.paths import PathWords
from leadline.report.timesplit import process_labels


def counters(analysis: Analysis, kept: Mask, words: PathWords) -> tuple[Counter, ...]:
    """One per counter."""
    ran = int(analysis.exclusive("cpu_sample")[kept].sum())
    return tuple(
        Counter(
            name=one.name,
            metric=one.metric,
            total=one.total,
            per_cpu_second=one.total / (ran / 1e9) if ran > 0 else None,
            lines=tuple(
                CounterLine(place, line.count) for line in one.lines if (place := words.place(line.row)) is not None
            ),
        )
        for one in counted(analysis, kept)
    )


def waiting(analysis: Analysis, words: PathWords) -> tuple[tuple[ThreadWaiting, ...], int]:
    """Threads that matter, and how many others only wait."""
    found, hidden = thread_waits(analysis.profile, analysis.scopes)
    labels = process_labels(analysis.profile)
    made = []
    for one in found:
        thread = analysis.profile.threads[one.thread]
        lines = [
            WaitingLine(line.state, place, line.ns)
            for line in one.lines
            if (place := words.place(line.row)) is not None
        ]
        made.append(
            ThreadWaiting(
                process=labels.get(thread.process, ""),
                thread=thread.name,
                main=one.main,
                wall_ns=one.wall_ns,
                ran_ns=one.ran_ns,
                states_ns=one.states_ns,
                lines=tuple(lines),
            )
        )
    return tuple(made), hidden
