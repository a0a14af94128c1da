"""`steps_of(profile)`: the steps of every process of a profile, whoever recorded it.

What was recorded at the borders of steps decides; else the marks of the trace window, as traces of others have them;
else the calling context tree: phases and outermost calls that repeat, with the clock of whatever timed them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import replace
from leadline._once import once
from leadline.profiles import Profile
from leadline.profiles.lineage import event_clocks
from leadline.schema import EventKind
from leadline.steps.completion import behind_ns, done_ns
from leadline.steps.model import BATCHES, OPTIMIZER, PROFILER, Found, NoSteps, RankSteps, Step, Steps, rank_steps
from leadline.steps.of_events import without_warm_up
from leadline.steps.of_tree import Counted, counted, recorded_steps

_TIMED = {"steps", "batches", "calls"}
_TIMES = ("timed_by", "mean_ns", "deviation_ns", "median_ns", "min_ns", "max_ns", "timed", "warm_up", "walls_ns")
_OF_ONE_JOB = 1.25
"""Times the slowest rank's step: what is longer is no step of one job but clocks that differ."""
NOTHING_REPEATS = (
    "nothing marks one: no optimizer's step, no loader and no model that is called again and again was seen; call "
    "leadline.step() at the end of each"
)


@once
def steps_of(profile: Profile) -> Steps | NoSteps:
    """The steps of a profile."""
    in_window = {one.process: one for one in _in_window(profile)}
    in_tree = {one.process: one for one in counted(profile)}
    recorded = recorded_steps(profile)
    found = []
    for process in sorted({*in_window, *in_tree}):
        rank = profile.processes[process].rank
        window, tree = in_window.get(process), in_tree.get(process)
        if tree is not None and (window is None or (tree.timed_by in _TIMED and tree.steps >= window.number)):
            made = _of_tree(tree, rank)
            if window is not None and not tree.mean_ns:
                made = replace(made, **{name: getattr(window, name) for name in _TIMES})
            found.append(made)
        elif window is not None:
            marks = tuple(tree.marks.tolist()) if tree is not None else ()
            found.append(replace(window, number=_same(window, tree), marks=marks, recorded=recorded.get(process)))
    if not found:
        return NoSteps(NOTHING_REPEATS)
    weight = {one.process: one.weight for one in in_tree.values()}

    def importance(one: RankSteps) -> tuple[float, ...]:
        """Training before all else that repeats; then what was done most, ranks of one job in their order."""
        trains = one.rests_on in (OPTIMIZER, PROFILER)
        most = one.number if trains else weight.get(one.process, one.mean_ns * one.number)
        return trains, one.rests_on != BATCHES, most, -one.process

    main = max(found, key=importance)
    return Steps(main, tuple(found), _job_ns(profile, main, found))


def _same(window: RankSteps, tree: Counted | None) -> int:
    """Steps that the sums of the tree hold, where the window says by what they are marked but has fewer of them: a
    trace's first step may have begun before it."""
    if tree is None or not window.number <= tree.steps <= window.number + 1:
        return window.number
    return tree.steps


def _job_ns(profile: Profile, main: RankSteps, ranks: Sequence[RankSteps]) -> float:
    """A step of all ranks of a job: from when the first began to when the last was done, over their steps; 0 where
    their clocks or steps are not comparable."""
    together = [one for one in ranks if one.span_ns[1] > one.span_ns[0] and one.timed == main.timed and one.rank >= 0]
    clocks = event_clocks(profile)
    ahead = [clocks[one.process] for one in together]
    if len(together) < 2 or len({one.rank for one in together}) < len(together) or None in ahead:
        return 0.0
    begins = [one.span_ns[0] + (clock or 0) for one, clock in zip(together, ahead, strict=True)]
    ends = [one.span_ns[1] + (clock or 0) for one, clock in zip(together, ahead, strict=True)]
    slowest = max(one.mean_ns for one in together)
    mean = (max(ends) - min(begins)) / main.timed
    return mean if slowest <= mean <= _OF_ONE_JOB * slowest else slowest


def _of_tree(one: Counted, rank: int) -> RankSteps:
    return RankSteps(
        process=one.process,
        rank=rank,
        thread=one.thread,
        number=one.steps,
        rests_on=one.rests_on,
        timed_by=one.timed_by if one.mean_ns else "",
        mean_ns=one.mean_ns,
        deviation_ns=one.deviation_ns,
        median_ns=one.median_ns,
        min_ns=one.min_ns,
        max_ns=one.max_ns,
        timed=one.timed,
        warm_up=one.warm_up,
        running_ns=one.running_ns,
        core_wait_ns=one.core_wait_ns,
        marks=tuple(one.marks.tolist()),
        recorded=one.recorded,
    )


def _in_window(profile: Profile) -> Iterator[RankSteps]:
    """Steps of which the trace window has the whole, extended until the device work that they launched has ended."""
    events = profile.events
    kind = np.asarray(events["kind"])
    marks = np.flatnonzero((kind == int(EventKind.STEP)) & (np.asarray(events["duration_ns"]) >= 0))
    if not marks.size:
        return
    owner = _owners(profile)
    for process in np.unique(owner[marks]).tolist():
        rows = marks[owner[marks] == process]
        start = np.asarray(events["start_ns"])[rows].astype(np.int64)
        end = start + np.asarray(events["duration_ns"])[rows]
        mine = np.flatnonzero(owner == process)
        columns = {
            name: np.asarray(events[name])[mine]
            for name in ("start_ns", "duration_ns", "kind", "correlation", "device", "stream")
        }
        done = done_ns(columns, start.tolist(), end.tolist())
        numbers = np.asarray(events["step"])[rows].tolist()
        whole = zip(numbers, start.tolist(), end.tolist(), done.tolist(), strict=True)
        behind = behind_ns(columns, int(start.min()), int(done[0]))
        found = without_warm_up(Found(tuple(Step(*one) for one in whole), PROFILER, behind_ns=behind))
        threads = np.asarray(events["thread"])[rows]
        yield rank_steps(
            found.walls_ns,
            process=process,
            rank=profile.processes[process].rank,
            thread=int(np.bincount(threads[threads >= 0]).argmax()) if (threads >= 0).any() else -1,
            rests_on=PROFILER,
            timed_by="trace window",
            warm_up=len(found.warm_up),
            span_ns=(found.begin_ns, max(step.done_ns for step in found.steps)),
        )


def _owners(profile: Profile) -> NDArray[np.int64]:
    """The process of every event; -1 where nothing says."""
    events = profile.events
    of_thread = np.array([one.process for one in profile.threads] or [-1], np.int64)
    of_device = np.array([one.process for one in profile.devices] or [-1], np.int64)
    thread, device = np.asarray(events["thread"]), np.asarray(events["device"])
    found: NDArray[np.int64] = np.where(
        thread >= 0,
        of_thread[np.maximum(thread, 0)],
        np.where(device >= 0, of_device[np.maximum(device, 0)], -1),
    )
    return found
