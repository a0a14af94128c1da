"""What holds for every measured profile. Each function takes an opened Profile and yields a sentence per contradiction.

Exact means exact: times are differences of one clock, so a call is its own time and its parts to the nanosecond. The
one tolerance is that of reading two clocks one after the other (`CLOCKS_NS`), per reading, never a percentage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.analysis import Analysis
from leadline.profiles import Profile
from leadline.profiles.lineage import clock_of, record_of_rows
from leadline.profiles.peaks import OF_A_MOMENT
from leadline.profiles.tree import Tree
from leadline.schema import METRICS, EventKind, FrameKind, MetricKind

CLOCKS_NS = 20_000
"""Between reading the wall clock and the thread's CPU clock at one border: two system calls on a busy machine. Time
that another program has the processor in between counts on the wall clock only, the side that cannot be exceeded."""
SLEW = 500e-6
"""What CLOCK_REALTIME may gain on CLOCK_MONOTONIC while it is being set (adjtimex: 500 parts per million)."""
STEP_NS = 10_000_000
"""What setting the clock may move it at once without being told to step."""

Contradictions = Iterator[str]


def counts_and_sums(profile: Profile) -> Contradictions:
    """Every row of `metrics` can be the summary of `count` numbers, and no time, size or count is below zero."""
    rows = profile.table("metrics")
    count, total = rows["count"].astype(np.float64), rows["sum"]
    kinds = [str(MetricKind(kind)) for kind in rows["metric"].tolist()]
    for row in np.flatnonzero(rows["count"] == 0).tolist():
        yield f"metrics row {row} ({kinds[row]}) counts nothing"
    for row in np.flatnonzero(rows["min"] < 0).tolist():
        yield f"metrics row {row} ({kinds[row]}) has the minimum {rows['min'][row]}"
    low, high = rows["min"] * count, rows["max"] * count
    slack = 1e-9 * np.maximum(np.abs(low), np.abs(high)) + 1
    for row in np.flatnonzero((total < low - slack) | (total > high + slack)).tolist():
        yield f"metrics row {row} ({kinds[row]}): the sum {total[row]} is not between count x min and count x max"
    least = total.astype(np.float64) ** 2 / np.maximum(count, 1)
    for row in np.flatnonzero(rows["sum_squares"] < least * (1 - 1e-6) - 1).tolist():
        yield f"metrics row {row} ({kinds[row]}): the sum of squares is below sum x sum / count"


def _devices_of(tree: Tree, metric: MetricKind) -> list[int]:
    """Rows of devices, -1 for the CPU, that the metric was measured on."""
    rows = tree.tables["metrics"]
    return np.unique(rows["device"][(rows["metric"] == int(metric)) & (rows["count"] != 0)]).tolist()


def inclusive_is_own_and_children(profile: Profile) -> Contradictions:
    """The roll-up, against the plain loop over parents."""
    tree = profile.tree
    parent = tree.parent.tolist()
    for info in METRICS:
        if not info.additive:
            continue
        moment = info.kind in OF_A_MOMENT  # added up within a process and on a device only
        for device in _devices_of(tree, info.kind) if moment else [None]:
            whole = [int(value) for value in tree.exclusive(info.kind, device).sum]
            for row in range(len(parent) - 1, 0, -1):
                whole[parent[row]] += whole[row]
            shown = tree.inclusive(info.kind, device).sum
            held = process_of_node(profile) >= 0 if moment else np.ones(len(tree), np.bool_)
            if (np.array(whole)[held] != shown[held]).any():
                yield f"{info.kind}: the inclusive values are not the sums of the subtrees"


def calls_are_their_own_time_and_their_parts(profile: Profile) -> Contradictions:
    """The `time` of an operator's subtree is its `call_time`, to the nanosecond: none counts twice, and none is lost.

    Without what ran below it later or elsewhere (the branches `backward` and `on another thread`). The subtree may hold less than the call, never more, in two
    cases: in a process that ran backward, whose work hangs below its forward line also where a region or an operator
    called for it; and of regions and phases, which may be open across others that do not nest in them.

    What outlives the frame that opened it (torch.compile's marks in context managers, regions of generators) goes on at
    another place, where its call counts; what ran in it before stays where it ran, below a node with fewer calls than
    times. Its times add up over all nodes of its name instead.

    Of files that follow one another (`--every`) it holds for their sum: a call counts in the file in which it ends, what
    it called before in the one before.
    """
    if "rolled" in profile.meta:
        return
    tree = profile.tree
    call, own = tree.exclusive("call_time"), tree.exclusive("time")
    whole = _own_thread(profile, "time")
    complete = np.array([process.complete for process in profile.processes], np.bool_)
    process = process_of_node(profile)
    moved = np.zeros(len(profile.processes) + 1, np.bool_)
    moved[process[_later(profile)]] = True
    wanted = (call.count > 0) & (own.count > 0) & (process >= 0)
    wanted &= complete[np.maximum(process, 0)]
    wanted &= np.isin(tree.kinds, [int(FrameKind.OPERATOR), int(FrameKind.REGION), int(FrameKind.PHASE)])
    operator = tree.kinds == int(FrameKind.OPERATOR)
    moves = operator & (call.count == 0) & (whole > 0)
    moves |= ~operator & wanted & (own.count > call.count)
    for (owner, kind, name), rows in _outliving_names(tree, process, moves).items():
        held, called = int(whole[rows].sum()), int(call.sum[rows].sum())
        exact = kind == int(FrameKind.OPERATOR) and not moved[owner]
        if called and complete[owner] and (held != called if exact else held > called):
            yield f"{FrameKind(kind).name.lower()} {name} was called for {called} ns and holds {held} ns in {len(rows)} places"
        wanted[rows] = False
    to_the_nanosecond = ~moved[process] & operator
    wrong = np.where(to_the_nanosecond, whole != call.sum, whole > call.sum)
    for row in np.flatnonzero(wanted & wrong).tolist():
        node = tree.node(row)
        yield (
            f"{node.kind} {node.name} (node {row}) was called for {call.sum[row]} ns and holds {whole[row]} ns in "
            f"{call.count[row]} calls"
        )


def _outliving_names(tree: Tree, process: NDArray[np.int64], moves: NDArray[np.bool_]) -> dict[Any, list[int]]:
    """All rows, by process, kind and name, of the names that some row of `moves` has."""
    found: dict[Any, list[int]] = {
        (int(process[row]), int(tree.kinds[row]), tree.node(row).name): []
        for row in np.flatnonzero(moves).tolist()
        if process[row] >= 0
    }
    kinds = [kind for _, kind, _ in found]
    for row in np.flatnonzero(np.isin(tree.kinds, kinds)).tolist() if found else ():
        key = (int(process[row]), int(tree.kinds[row]), tree.node(row).name)
        if key in found:
            found[key].append(row)
    return found


def threads_spend_no_more_than_there_is(profile: Profile) -> Contradictions:
    """On each thread all exclusive times together last at most as long as the thread was seen, and so do its parts."""
    tree = profile.tree
    whole, running = _own_thread(profile, "time"), _own_thread(profile, "running_time")
    borders = tree.inclusive("running_time").count
    # In a file that begins where another one ended a call that was under way counts whole, and so does what a region ran
    # since its last border: one path of them a thread.
    begun_before = int(tree.exclusive("call_time").max.max(initial=0)) if "rolled" in profile.meta else 0
    for thread in profile.threads:
        row, name = thread.node.row, f"thread {thread.name or thread.tid}"
        same_node = [other for other in profile.threads if other.node.row == row]
        if len(same_node) > 1:  # threads of one name and process may share a frame
            if thread is not same_node[0]:
                continue
            name = f"{len(same_node)} threads {thread.name}"
        wall, cpu = sum(one.wall_ns for one in same_node), sum(one.cpu_ns for one in same_node)
        clocks = CLOCKS_NS * (2 + int(borders[row]))
        if whole[row] > wall + begun_before:
            yield f"{name} spent {whole[row]} ns of the {wall} ns that it was seen"
        if running[row] > min(cpu, wall) + clocks + begun_before:
            yield f"{name} ran {running[row]} ns in regions of {cpu} ns that it ran and {wall} ns that it was seen"
        for one in same_node:
            if min(one.wall_ns, one.cpu_ns, one.operator_ns, one.data_ns) < 0:
                yield f"{name} has a time below zero: {one}"
            if one.operator_ns + one.data_ns > one.wall_ns + begun_before:
                yield f"{name}: operators {one.operator_ns} and data {one.data_ns} ns of {one.wall_ns} ns"
            if one.cpu_ns > one.wall_ns + 2 * CLOCKS_NS:
                yield f"{name} ran {one.cpu_ns} ns in {one.wall_ns} ns"


def bytes_balance(profile: Profile) -> Contradictions:
    """Per process and device: what is freed was allocated, and the peak lies between what is left and all of it."""
    if profile.tables.rows("ranks"):
        return  # of folded ranks bytes are added and the peak is that of one
    rows = profile.table("metrics")
    process = process_of_node(profile)[rows["node"]]
    places = sorted(set(zip(process.tolist(), rows["device"].tolist(), strict=True)))
    for owner, device in places:
        here = (process == owner) & (rows["device"] == device)
        total = {
            kind: int(rows["sum"][here & (rows["metric"] == int(kind))].sum())
            for kind in (MetricKind.ALLOC_BYTES, MetricKind.FREE_BYTES, MetricKind.PEAK_LIVE_BYTES)
        }
        allocated, freed, peak = total.values()
        where = f"process {owner}, device {device}"
        if freed > allocated:
            yield f"{where}: {freed} bytes were freed of {allocated} allocated"
        if peak and not allocated - freed <= peak <= allocated:
            yield f"{where}: a peak of {peak} bytes, with {allocated} allocated and {freed} freed"


def events_nest_inside_their_process(profile: Profile) -> Contradictions:
    """Operators and calls of a thread lie side by side or inside one another; every event lies within the time that
    its process was measured."""
    events = profile.events
    if not len(events["start_ns"]):
        return
    start, duration = events["start_ns"].astype(np.int64), events["duration_ns"].astype(np.int64)
    if np.any(duration < -1):
        yield "an event lasts less than no time"
    end = start + np.maximum(duration, 0)
    stacked = np.isin(events["kind"], [int(EventKind.OPERATOR), int(EventKind.API), int(EventKind.SYNCHRONIZE)])
    for thread in profile.threads:
        rows = np.flatnonzero((events["thread"] == thread.row) & stacked & (duration >= 0))
        rows = rows[np.lexsort((-end[rows], start[rows]))]
        ends: list[int] = []
        for row in rows.tolist():
            while ends and ends[-1] <= start[row]:
                ends.pop()
            if ends and end[row] > ends[-1]:
                yield f"event {row} of thread {thread.name} ends {end[row] - ends[-1]} ns after the one it began in"
            ends.append(int(end[row]))
    yield from _events_outside(profile, start, end)


def _events_outside(profile: Profile, start: NDArray[np.int64], end: NDArray[np.int64]) -> Contradictions:
    process_of_thread = np.array([thread.process for thread in profile.threads], np.int64)
    thread = profile.events["thread"]
    for process, record in zip(profile.processes, record_of_rows(profile), strict=True):
        clock = clock_of(record)
        mine = np.flatnonzero(thread >= 0)
        mine = mine[process_of_thread[thread[mine]] == process.row]
        if clock is None or not mine.size or not process.end_ns:
            continue
        slack = STEP_NS + int(SLEW * (process.end_ns - process.start_ns))
        first, last = int(start[mine].min()) + clock, int(end[mine].max()) + clock
        if first < process.start_ns - slack:
            yield f"an event began {process.start_ns - first} ns before process {process.pid} was measured"
        if last > process.end_ns + slack:
            yield f"an event ended {last - process.end_ns} ns after process {process.pid} was measured"


def references_tell_processes_apart(profile: Profile) -> Contradictions:
    """Threads and devices stand below their own process; nothing below a process belongs to another's thread."""
    process = process_of_node(profile)
    for thread in profile.threads:
        if process[thread.node.row] != thread.process:
            yield f"thread {thread.name} of process {thread.process} stands below process {process[thread.node.row]}"
    rows = profile.table("metrics")
    owner = np.array([device.process for device in profile.devices] + [-1], np.int64)[rows["device"]]
    wrong = np.flatnonzero((owner >= 0) & (owner != process[rows["node"]]))
    for row in wrong.tolist():
        yield f"metrics row {row} names the device of another process"


def helpers_spend_no_more_than_there_is(profile: Profile) -> Contradictions:
    """As above, with what hangs below other threads' lines, which names the thread; several may have one name."""
    whole = _own_thread(profile, "time")
    for (process, name), elsewhere in _done_for_others(profile).items():
        threads = [thread for thread in profile.threads if (thread.process, thread.name) == (process, name)]
        spent = elsewhere + sum(int(whole[row]) for row in {thread.node.row for thread in threads})
        wall = sum(thread.wall_ns for thread in threads)
        if not threads or spent > wall:
            yield f"{len(threads)} threads {name} spent {spent} ns of the {wall} ns that they were seen"


def waits_are_part_of_the_time(profile: Profile) -> Contradictions:
    """What a scope and all inside it waited lasts no longer than they did; none waits for less than no time."""
    time, wait = _own_thread(profile, "time"), _own_thread(profile, "wait_time")
    count = profile.tree.inclusive("wait_time").count
    scopes = (FrameKind.OPERATOR, FrameKind.REGION, FrameKind.PHASE)
    inside = np.isin(profile.tree.kinds, [int(kind) for kind in scopes]) & (profile.tree.exclusive("time").count > 0)
    for row in np.flatnonzero(inside & (wait > time + CLOCKS_NS * count)).tolist():
        node = profile.tree.node(row)
        yield f"{node.kind} {node.name} (node {row}) waited {wait[row]} ns of {time[row]} ns"


def waiting_for_a_device_spins_no_longer_than_it_lasts(profile: Profile) -> Contradictions:
    """What a thread ran while it waited for a device: at most the calls that waited, and what it ran in all."""
    call, ran = profile.tree.exclusive("call_time"), profile.tree.exclusive("sync_running_time")
    for row in np.flatnonzero((call.count > 0) & (ran.sum > call.sum + CLOCKS_NS * ran.count)).tolist():
        yield f"{profile.tree.node(row).name} (node {row}) waited {call.sum[row]} ns and spun {ran.sum[row]} ns"
    spun = _own_thread(profile, "sync_running_time")
    for thread in profile.threads:
        if spun[thread.node.row] > thread.cpu_ns + CLOCKS_NS * int(ran.count.sum()):
            yield f"thread {thread.name} spun {spun[thread.node.row]} ns of the {thread.cpu_ns} ns that it ran"


def pauses_are_no_time_of_any_thread(profile: Profile) -> Contradictions:
    """No thread was seen for longer than measuring ran in its process, so what it idles holds no pause."""
    for process, record in zip(profile.processes, record_of_rows(profile), strict=True):
        wall, paused = record.get("wall_ns") or 0, record.get("paused_ns") or 0
        if not process.complete or wall <= 0:
            continue
        if paused > wall + CLOCKS_NS:
            yield f"measuring of process {process.pid} was paused for {paused} ns of {wall} ns"
        for thread in profile.threads:
            if thread.process == process.row and thread.wall_ns > wall - paused + CLOCKS_NS:
                yield f"thread {thread.name} was seen {thread.wall_ns} ns of {wall} ns with pauses of {paused} ns"


def the_split_is_the_wall_time(profile: Profile) -> Contradictions:
    """The parts into which a thread's time is split add up to the time that it was seen, none below nothing."""
    for split in Analysis(profile).time_splits:
        thread, parts = profile.threads[split.thread], sum(split.parts_ns.values())
        if parts != thread.wall_ns or min(split.parts_ns.values()) < 0:
            yield f"thread {thread.name} was seen {thread.wall_ns} ns, its parts are {split.parts_ns}"
        if split.spun_ns is not None and not 0 <= split.spun_ns <= split.parts_ns["device_wait"]:
            yield f"thread {thread.name} spun {split.spun_ns} ns of {split.parts_ns['device_wait']} ns"


INVARIANTS: tuple[Callable[[Profile], Contradictions], ...] = (
    counts_and_sums,
    inclusive_is_own_and_children,
    calls_are_their_own_time_and_their_parts,
    threads_spend_no_more_than_there_is,
    helpers_spend_no_more_than_there_is,
    waits_are_part_of_the_time,
    waiting_for_a_device_spins_no_longer_than_it_lasts,
    pauses_are_no_time_of_any_thread,
    the_split_is_the_wall_time,
    bytes_balance,
    events_nest_inside_their_process,
    references_tell_processes_apart,
)


def contradictions(profile: Profile) -> list[str]:
    """Everything that is wrong with a profile, in words; empty when nothing is."""
    return [f"{check.__name__}: {sentence}" for check in INVARIANTS for sentence in check(profile)]


def process_of_node(profile: Profile) -> NDArray[np.int64]:
    """Row of the process that each node stands below, -1 for the root."""
    tree = profile.tree
    found = np.full(len(tree), -1, np.int64).tolist()
    for process in profile.processes:
        found[process.node.row] = process.row
    for row, above in enumerate(tree.parent.tolist()):
        if above >= 0 and found[row] < 0:
            found[row] = found[above]
    return np.array(found, np.int64)


def _later(profile: Profile) -> NDArray[np.bool_]:
    """The branches `backward` and `on another thread`; a phase that was measured as itself, such as one the user opened
    around `loss.backward()`, is none."""
    tree = profile.tree
    measured = (tree.exclusive("call_time").count > 0) | (tree.exclusive("time").count > 0)
    later: NDArray[np.bool_] = (
        ~measured
        & (tree.frame_rows("phase", "backward") | tree.frame_rows("phase", "on another thread"))[tree.frame_of]
    )
    return later


def _own_thread(profile: Profile, metric: str) -> NDArray[np.int64]:
    """A metric of every node and of what its thread did inside it; the branches of `_later` are not carried up."""
    whole = [int(value) for value in profile.tree.exclusive(metric).sum]
    later = _later(profile).tolist()
    parent = profile.tree.parent.tolist()
    for row in range(len(whole) - 1, 0, -1):
        if not later[row]:
            whole[parent[row]] += whole[row]
    return np.array(whole, np.int64)


def _done_for_others(profile: Profile) -> dict[tuple[int, str], int]:
    """By process and name of a thread: `time` of what it did below other threads' lines."""
    tree = profile.tree
    whole, process = _own_thread(profile, "time"), process_of_node(profile)
    found: dict[tuple[int, str], int] = {}
    elsewhere = _later(profile) & tree.frame_rows("phase", "on another thread")[tree.frame_of]
    for row in np.flatnonzero(elsewhere).tolist():
        if "pool" in tree.node(row).detail:  # threads of a library that are not in the profile
            continue
        key = (int(process[row]), str(tree.node(row).detail.get("thread")))
        found[key] = found.get(key, 0) + int(whole[row])
    return found
