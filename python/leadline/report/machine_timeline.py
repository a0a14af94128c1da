"""What the kernel did with every thread that it recorded, as text and CSV: of recordings without a window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leadline._dataclass import dataclass
from leadline.profiles import Profile
from leadline.report.csv_text import csv_text
from leadline.report.source import visible
from leadline.report.timeline import TimelineError, spent_text, state_lane
from leadline.trace.kernel.window import span_ns, states_of
from leadline.trace.timeline import kernel_sentence
from leadline.trace.waits import Spent, ThreadTime
from leadline.units import duration

_MOST_THREADS = 20
_HEADER = ("thread", "tid", "wall_ns", "running_ns", "runnable_ns", "blocked_ns", "unseen_ns", "waited_for")


@dataclass(frozen=True)
class ThreadRow:
    """A thread of the machine over the whole recording."""

    name: str
    tid: int
    spent: Spent
    lane: str


def machine_rows(profile: Profile, thread: str | None = None) -> list[ThreadRow]:
    """Every thread, those that ran longest first; `thread`: only those of this name or number. Raises TimelineError."""
    begin, end = span_ns(profile)
    states = states_of(profile, every=True)
    found = []
    for tid in np.unique(states.tid).tolist():
        name = states.names.get(tid) or f"thread {tid}"
        if thread is None or thread in (name, str(tid)):
            time = ThreadTime(states.of(tid))
            spent = time.spent(np.array([begin]), np.array([end]))
            found.append(ThreadRow(name, tid, spent, state_lane(time, begin, end)))
    if not found:
        raise TimelineError(f"The Linux kernel recorded no thread {thread}.")
    return sorted(found, key=lambda row: (-row.spent.running_ns, row.tid))


def machine_as_csv(rows: Sequence[ThreadRow]) -> str:
    """A row per thread."""
    made: list[Sequence[object]] = [_HEADER]
    for row in rows:
        spent = row.spent
        times = (spent.wall_ns, spent.running_ns, spent.runnable_ns, spent.blocked_ns, spent.unseen_ns)
        words = "; ".join(f"{cause.words()} {cause.time_ns} ns" for cause in spent.causes)
        made.append((row.name, row.tid, *times, words))
    return csv_text(made)


def machine_as_text(profile: Profile, rows: Sequence[ThreadRow]) -> str:
    """Every thread as a lane; of many those that ran longest."""
    begin, end = span_ns(profile)
    lines = [f"no trace window of a program; {kernel_sentence(profile)}", f"recorded {duration(end - begin)}", ""]
    for row in rows[:_MOST_THREADS]:
        lines.append(f"  {f'{row.name} {row.tid}'[:22]:<22}  {row.lane}")
        lines.append(f"    {spent_text(row.spent)}")
    if len(rows) > _MOST_THREADS:
        lines += [
            "",
            f"{len(rows) - _MOST_THREADS} more threads that ran for less; --thread NAME shows one, --format csv all.",
        ]
    lines += ["", "# running, ~ runnable, . blocked, ? unseen"]
    return "\n".join(visible(one) for one in lines) + "\n"
