"""A running program in one screen of text: what it does now, what took the time since the last look, its steps, memory
and queue."""

from __future__ import annotations

import numpy as np

from leadline._dataclass import dataclass
from leadline.engines import engines_of
from leadline.engines.words import now_line
from leadline.profiles import Profile
from leadline.profiles.live import LiveReading
from leadline.profiles.mains import main_threads
from leadline.profiles.thread_states import place_text as standing_text
from leadline.report import ReportOptions, build_report
from leadline.report.phrases import below_text, place_text
from leadline.report.source import visible
from leadline.schema import FrameKind, MetricKind
from leadline.units import duration, number, share, size

_TOP = 40
_MOST_ENGINES = 4


@dataclass(frozen=True)
class Row:
    """A hot path: own time since the last look, its share of the busiest thread's wall time, calls."""

    time_ns: int
    calls: int
    what: str
    where: str


@dataclass(frozen=True)
class LiveFacts:
    """What a screen shows. Numbers are since the last look, but `live_bytes` and `peak_bytes`; -1 or 0: unknown."""

    seconds: float
    age_s: float
    ended: bool
    processes: int
    threads: int
    steps: int
    step_ns: int
    steps_so_far: int
    live_bytes: int
    peak_bytes: int
    allocated_bytes: int
    queue: float
    phases: tuple[tuple[str, int], ...]
    rows: tuple[Row, ...]
    inside: tuple[str, ...]
    serving: tuple[str, ...] = ()
    """A line for each engine that serves: tokens a second, queue, cache, the last minute's quantiles."""


def live_facts(look: LiveReading) -> LiveFacts:
    """From one look."""
    report = build_report(look.now, ReportOptions(top=_TOP, merge_layers=True), "")
    rows = tuple(
        Row(
            path.values.get("time", 0),
            path.calls,
            below_text(path, notes=False) or path.inner,
            place_text(path.place) if path.place is not None else "",
        )
        for path in report.paths
    )
    steps_ns, steps = _steps(look.now)
    allocated, freed = (_total(look.whole, name) for name in ("alloc_bytes", "free_bytes"))
    queue = look.now.tree.exclusive("queue_depth")
    count = int(queue.count.sum())
    return LiveFacts(
        seconds=look.seconds,
        age_s=look.age_s,
        ended=look.ended,
        processes=len(look.whole.processes),
        threads=len(look.whole.threads),
        steps=steps,
        step_ns=steps_ns // steps if steps else 0,
        steps_so_far=_steps(look.whole)[1],
        live_bytes=max(allocated - freed, 0),
        peak_bytes=_total(look.whole, "peak_live_bytes"),
        allocated_bytes=_total(look.now, "alloc_bytes"),
        queue=float(queue.sum.sum()) / count if count else -1.0,
        phases=_phases(look.now),
        rows=rows,
        inside=_inside(look.whole),
        serving=tuple(now_line(one) for one in engines_of(look.whole.meta)[:_MOST_ENGINES]),
    )


def live_text(facts: LiveFacts, width: int = 120, rows: int = 20) -> str:
    """The screen; ends without a newline."""
    lines = [_head(facts), _memory(facts), *facts.serving]
    total = sum(ns for _, ns in facts.phases)
    if total:
        lines.append("phases  " + "  ".join(f"{name} {share(ns, total)}" for name, ns in facts.phases))
    lines += [f"now     {place}" for place in facts.inside[:4]]
    lines += ["", f"{'own time':>10}{'calls':>10}  path"]
    for row in facts.rows[:rows]:
        lines.append(f"{duration(row.time_ns):>10}{number(row.calls):>10}  {row.where}  {row.what}")
    if not facts.rows:
        lines.append("no measured call ended since the last screen")
    return "\n".join(visible(line)[:width] for line in lines)


def _head(facts: LiveFacts) -> str:
    words = [
        "ended" if facts.ended else f"written {duration(int(facts.age_s * 1e9))} ago",
        f"last {duration(int(facts.seconds * 1e9))}",
        _step(facts),
        f"{facts.processes} processes" if facts.processes > 1 else "",
        f"{facts.threads} threads",
    ]
    return " · ".join(word for word in words if word)


def _step(facts: LiveFacts) -> str:
    """Nothing of a server, whose line says more."""
    if facts.steps:
        return (
            f"a step takes {duration(facts.step_ns)} ({number(facts.steps)} since, {number(facts.steps_so_far)} in all)"
        )
    return "" if facts.serving else f"no step ended ({number(facts.steps_so_far)} in all)"


def _memory(facts: LiveFacts) -> str:
    words = [
        f"memory  {size(facts.live_bytes)} of tensors alive",
        f"peak {size(facts.peak_bytes)}",
        f"{size(facts.allocated_bytes)} allocated since",
        f"queue {facts.queue:.1f}" if facts.queue >= 0 else "",
    ]
    return " · ".join(word for word in words if word)


def _steps(profile: Profile) -> tuple[int, int]:
    values = [node.exclusive("call_time") for node in profile.tree.find(kind="phase", name="step")]
    return sum(value.sum for value in values), sum(value.count for value in values)


def _total(profile: Profile, metric: str) -> int:
    return int(profile.tree.exclusive(metric).sum.sum())


def _phases(profile: Profile) -> tuple[tuple[str, int], ...]:
    """Own time by the phase it was in, the largest first; what is outside all is `other`."""
    tree = profile.tree
    own = np.maximum(tree.exclusive(MetricKind.TIME).sum, 0)
    sums: dict[str, int] = {}
    names: list[str] = ["other"] * len(tree)
    kinds, parent, frame = tree.kinds.tolist(), tree.parent.tolist(), tree.frame_of.tolist()
    for row in range(1, len(tree)):
        name = tree.text("name", frame[row]) if kinds[row] == FrameKind.PHASE else ""
        names[row] = name if name not in ("", "step", "turn") else names[parent[row]]
        if own[row]:
            sums[names[row]] = sums.get(names[row], 0) + int(own[row])
    return tuple(sorted(sums.items(), key=lambda one: -one[1])[:6])


def _inside(profile: Profile) -> tuple[str, ...]:
    """Where threads stood when they wrote last, main threads first."""
    table = profile.tables["open_places"]
    threads = profile.threads
    mains = main_threads(profile.tables)
    found = []
    for thread, node in zip(table["thread"].tolist(), table["node"].tolist(), strict=True):
        one = threads[thread]
        main = one.row in mains
        found.append((not main, f"{one.name or one.tid}: {standing_text(profile.tree.node(node))}"))
    return tuple(text for _, text in sorted(found))
