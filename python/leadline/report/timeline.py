"""The trace window step by step as text and CSV: lanes of phases, what each thread did meanwhile, and why it waited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from leadline._dataclass import replace
from leadline.profiles import Profile
from leadline.report.csv_text import csv_text
from leadline.report.source import visible
from leadline.report.waits import WaitLine
from leadline.steps.of_events import main_thread
from leadline.trace.states import State
from leadline.trace.tables import Kind, Thread, Trace, TraceError
from leadline.trace.timeline import BETWEEN, WHOLE, Row, Timeline, kernel_sentence, timelines
from leadline.trace.waits import Cause, Spent, ThreadTime
from leadline.units import duration, share

_LANE = 72
_LETTERS = {
    "forward": "F",
    "backward": "B",
    "optimizer": "O",
    "closure": "C",
    "zero_grad": "Z",
    "data loading": "D",
    "compile": "K",
}
_OPERATORS = "x"
_STATES = {State.RUNNING: "#", State.RUNNABLE: "~", State.BLOCKED: "."}
_MOST_STEPS = 10
_MOST_SENTENCES = 6
_TIMES = ("wall_ns", "running_ns", "runnable_ns", "blocked_ns", "unseen_ns")
_HEADER = ("rank", "step", "thread", "tid", "phase", "start_ns", *_TIMES, "waited_for")


class TimelineError(ValueError):
    """There is nothing to show; the message is a sentence."""


def chosen(profile: Profile, source: str, thread: str | None = None, step: int | None = None) -> list[Timeline]:
    """The timelines with the rows asked for. Raises TimelineError, which names what there is."""
    try:
        found = timelines(profile, source)
    except TraceError as error:
        raise TimelineError(f"{error}.") from error
    if step is not None:
        numbers = sorted({one.number for line in found for one in line.steps})
        if step not in numbers:
            raise TimelineError(f"There is no step {step} in the window; it has {numbers[0]} to {numbers[-1]}.")
        found = [
            replace(
                line,
                steps=[one for one in line.steps if one.number == step],
                rows=[row for row in line.rows if row.step == step],
            )
            for line in found
        ]
    if thread is not None:
        kept = [replace(line, rows=[row for row in line.rows if _is(row.thread, thread)]) for line in found]
        if not any(line.rows for line in kept):
            names = sorted({f"{one.name or 'thread'} ({one.tid})" for line in found for one in line.trace.threads})
            raise TimelineError(
                f"There is no thread {thread} with phases in the window; the threads are {', '.join(names)}."
            )
        found = kept
    return found


def _is(thread: Thread, wanted: str) -> bool:
    return wanted in (thread.name, str(thread.tid))


def as_csv(found: Sequence[Timeline]) -> str:
    """A row per phase, thread and step; columns of the kernel are empty where it was not recorded."""
    made: list[Sequence[object]] = [_HEADER]
    for line in found:
        for row in line.rows:
            spent = row.spent
            times = (
                (spent.running_ns, spent.runnable_ns, spent.blocked_ns, spent.unseen_ns) if spent else ("", "", "", "")
            )
            words = "; ".join(f"{cause.words()} {cause.time_ns} ns" for cause in spent.causes) if spent else ""
            place = (row.rank, row.step, row.thread.name, row.thread.tid, row.phase, row.start_ns, row.wall_ns)
            made.append((*place, *times, words))
    return csv_text(made)


def as_text(profile: Profile, found: Sequence[Timeline]) -> str:
    """Every step as lanes and rows; of long windows the first steps."""
    lines: list[str] = []
    for line in found:
        who = f"rank {line.trace.rank}, " if line.trace.rank >= 0 else ""
        lines += [f"{who}{len(line.steps)} step{'s' * (len(line.steps) != 1)}; {kernel_sentence(profile)}"]
        lines += [f"note: {line.doubt}"] if line.doubt else []
        lines += [f"note: {warning}" for warning in line.trace.warnings]
        for step in line.steps[:_MOST_STEPS]:
            rows = [row for row in line.rows if row.step == step.number]
            lines += ["", *_step(line, step.start_ns, step.end_ns, step.number, rows)]
        if len(line.steps) > _MOST_STEPS:
            lines += ["", f"{len(line.steps) - _MOST_STEPS} more steps; --step N shows one, --format csv all."]
        lines.append("")
    letters = ", ".join(f"{letter} {name}" for name, letter in _LETTERS.items())
    letters += f", {_OPERATORS} operators of a thread without phases"
    lines.append(f"lanes: {letters}, _ between phases; below: # running, ~ runnable, . blocked, ? unseen")
    return "\n".join(visible(one) for one in lines) + "\n"


def _step(line: Timeline, begin: int, end: int, number: int, rows: Sequence[Row]) -> Iterator[str]:
    yield f"step {number}  {duration(end - begin)}, a column is {duration((end - begin) / _LANE)}"
    for thread in dict.fromkeys(row.thread for row in rows):
        mine = [row for row in rows if row.thread == thread]
        place = line.trace.threads.index(thread)
        name = f"{thread.name or 'thread'} {thread.tid}"
        yield f"  {name[:22]:<22}  {_phases(line.trace, place, begin, end)}"
        if place in line.times:
            yield f"  {'':<22}  {state_lane(line.times[place], begin + line.shift_ns, end + line.shift_ns)}"
        for row in mine:
            yield f"    {row.phase:<16} {duration(row.wall_ns):>9}  {spent_text(row.spent)}".rstrip()


def _phases(trace: Trace, thread: int, begin: int, end: int) -> str:
    lane = ["_"] * _LANE
    rows = trace.of_kind(Kind.PHASE)
    rows = rows[trace.events["thread"][rows] == thread]
    without = not rows.size and thread != main_thread(trace)
    if without:
        rows = trace.of_kind(Kind.OPERATOR)
        rows = rows[trace.events["thread"][rows] == thread]
    for row in rows.tolist():
        low = (int(trace.events["start_ns"][row]) - begin) * _LANE / max(end - begin, 1)
        high = (int(trace.end_ns[row]) - begin) * _LANE / max(end - begin, 1)
        if high <= 0 or low >= _LANE:
            continue
        first, last = max(round(low), 0), min(max(round(high), round(low) + 1), _LANE)
        name = trace.name(row)
        letter = _OPERATORS if without else _LETTERS.get(name, name[:1] or "?")
        lane[first:last] = letter * (last - first)
    return "".join(lane)


def state_lane(time: ThreadTime, begin: int, end: int) -> str:
    """What a thread did from `begin` to `end`, a letter per column."""
    borders = np.linspace(begin, end, _LANE + 1).astype(np.int64)
    lane = []
    for low, high in pairwise(borders):
        spent = time.spent(np.array([low]), np.array([high]))
        parts = {
            "#": spent.running_ns,
            "~": spent.runnable_ns,
            ".": spent.blocked_ns,
            "?": spent.unseen_ns,
        }
        lane.append(max(parts, key=lambda letter: parts[letter]))
    return "".join(lane)


def spent_text(spent: Spent | None) -> str:
    """ "running 12%, runnable 60% (`cc1plus` held the CPU 50%), blocked 28% (in read until `worker` woke it 27%)"."""
    if spent is None or not spent.wall_ns:
        return ""
    parts = []
    for name, time_ns, state in (
        ("running", spent.running_ns, State.RUNNING),
        ("runnable", spent.runnable_ns, State.RUNNABLE),
        ("blocked", spent.blocked_ns, State.BLOCKED),
    ):
        if time_ns > 0:
            causes = [cause for cause in spent.causes if cause.state is state][:2]
            told = ", ".join(f"{cause.words()} {share(cause.time_ns, spent.wall_ns)}" for cause in causes)
            parts.append(f"{name} {share(time_ns, spent.wall_ns)}" + (f" ({told})" if told else ""))
    if spent.unseen_ns:
        parts.append(f"unseen {share(spent.unseen_ns, spent.wall_ns)}")
    return ", ".join(parts)


def wait_lines(profile: Profile) -> tuple[WaitLine, ...]:
    """What the threads that run the loops waited for over the whole window, phase by phase; empty where the kernel was
    not recorded."""
    if not len(profile.table("kernel_events")["time_ns"]) or not len(profile.events["start_ns"]):
        return ()
    try:
        found = timelines(profile)
    except TraceError:
        return ()
    lines = []
    for line in found:
        who = f"rank {line.trace.rank}: " if len(found) > 1 and line.trace.rank >= 0 else ""
        for phase, spent in sorted(_by_phase(line).items(), key=lambda item: -item[1].wall_ns):
            waited = spent.runnable_ns + spent.blocked_ns
            if phase != WHOLE and spent.wall_ns and waited > spent.wall_ns / 20:
                lines.append(_wait_line(f"{who}{phase}", spent))
    return tuple(lines[:_MOST_SENTENCES])


def _wait_line(phase: str, spent: Spent) -> WaitLine:
    told = [
        f"{cause.words()} {share(cause.time_ns, spent.wall_ns)}"
        for state in (State.RUNNABLE, State.BLOCKED)
        for cause in [one for one in spent.causes if one.state is state][:2]
    ]
    text = f"{phase} {duration(spent.wall_ns)}: {spent_text(spent)}"
    parts = (spent.running_ns, spent.runnable_ns, spent.blocked_ns, spent.unseen_ns)
    return WaitLine(phase, spent.wall_ns, *parts, tuple(told), text)


def _by_phase(line: Timeline) -> dict[str, Spent]:
    """The main thread's phases, over all steps."""
    main = next((row.thread for row in line.rows if row.phase == WHOLE), None)
    found: dict[str, Spent] = {}
    for row in line.rows:
        if row.thread == main and row.spent is not None:
            name = row.phase if row.phase != BETWEEN else "between phases"
            found[name] = _sum(found[name], row.spent) if name in found else row.spent
    return found


def _sum(one: Spent, other: Spent) -> Spent:
    causes: dict[tuple[State, str, str], Cause] = {}
    for cause in (*one.causes, *other.causes):
        key = (cause.state, cause.who, cause.call)
        if key in causes:
            known = causes[key]
            cause = replace(known, time_ns=known.time_ns + cause.time_ns, times=known.times + cause.times)
        causes[key] = cause
    return Spent(
        one.wall_ns + other.wall_ns,
        one.running_ns + other.running_ns,
        one.runnable_ns + other.runnable_ns,
        one.blocked_ns + other.blocked_ns,
        one.unseen_ns + other.unseen_ns,
        tuple(sorted(causes.values(), key=lambda cause: -cause.time_ns)),
    )
