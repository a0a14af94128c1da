"""How each thread spent its wall time: the only place that splits it. The parts add up to the wall time, always.

Measured, per thread: wall and CPU time, time in outermost operators and in data loading outside them (table
`threads`); per node: time of every scope, `sync_time` (waits for a device), `wait_time` (other known waits),
`running_time` (CPU time of regions and phases). Each part is at most as large as what the others leave:

    operators       in operators, less what of it was communication, compilation or a wait
    data            in data loading outside operators, less waits for a device
    communication   in what providers declare to be communication, its waits included
    compile         in the phase `compile`, wherever it stands
    device_wait     waits for a device, spinning or asleep
    no_work         in the phase `no work` of an engine that serves: it had no request
    other_wait      other known waits; and, as an estimate, what another thread did of this thread's backward pass or
                    a runtime's own threads (XLA's) of the operators below its lines
    python          CPU time of the thread that is none of the above (estimate)
    idle            the rest (estimate: it includes standing in line for a core or for the interpreter's lock)

Where waiting was looked at (`--wait`, metric `wait`), what a thread waited for outside of operators and data loading
is known: a device, or others (locks, the interpreter's among them, input and output, children, a core). Idle is then
sleep, and what nothing has seen.

Assumptions make the estimates. Operators run on the CPU for the share of their time that was measured on one of them in
a millisecond (`operator_running_time`), which leaves out what they stood in line for a core; in a file that has not
measured it, for as long as they last, less their waits. So do data loading and compilation where a file has no
`running_time`, and waits for a device where it has no `sync_running_time`.

The tree books backward work under the forward lines of the thread that ran forward. Where the operators of that thread
say that it did not run them, they are counted for the thread of the process whose operators the tree does not explain:
autograd's device thread. What a helper thread did for a line (the phase `on another thread`) is the helper's, which
the phase names.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.analysis.columns import Mask, Rows, above, at_rows, factorized, group_sums, nearest
from leadline.analysis.engine_phases import NO_WORK
from leadline.analysis.scopes import Scopes, within
from leadline.analysis.threads import main_threads
from leadline.analysis.waiting import METRIC as WAIT
from leadline.analysis.waiting import STATES, states_of
from leadline.profiles import Profile, Thread, Tree
from leadline.profiles.communication import says_communication
from leadline.schema import FrameKind

PARTS = ("operators", "python", "data", "communication", "compile", "device_wait", "no_work", "other_wait", "idle")
"""In the order in which they are shown."""
MOST_PLACES = 3
_OPERATORS, _PYTHON, _DATA, _COMMUNICATION, _COMPILE, _DEVICE, _NO_WORK, _OTHER, _IDLE = range(len(PARTS))
_NO_THREAD = -2  # of work that threads did which are not in the profile
_BUSY, _RAN = 0.005, 0.05  # shares of the longest thread's wall time that make a thread worth showing


@dataclass(frozen=True)
class Place:
    """`row`: a node whose user line it is; `time_ns`: of the part, on that line, before it was cut to what was left."""

    row: int
    time_ns: int


@dataclass(frozen=True)
class Split:
    """One thread; `thread` is its row. `parts_ns` has every name of PARTS. `estimated`: those that are not measured.
    `spun_ns`: of `device_wait`, how long the thread took a core while it waited; None where that was not measured."""

    thread: int
    main: bool
    wall_ns: int
    parts_ns: dict[str, int]
    estimated: tuple[str, ...]
    spun_ns: int | None
    places: dict[str, tuple[Place, ...]]


@dataclass(frozen=True)
class _Nodes:
    """Per node: `thread` that ran it (row, -1 for none), `part`, whether in an operator, in data loading; `away`: row
    of the thread that waited while another ran it, -1 for none; `pooled`: of the one for whose line a runtime's own
    threads ran it, which are not in the profile. `within_one`: in an operator that is in data loading,
    in compilation, in a region of communication, so its CPU time is in their running time."""

    thread: Rows
    part: Rows
    in_operator: Mask
    loading: Mask
    away: Rows
    pooled: Rows
    within_one: tuple[Mask, Mask, Mask]


def time_splits(profile: Profile, scopes: Scopes) -> list[Split]:
    """One per main thread, and per other thread that ran a noticeable part; by process, main first."""
    threads = profile.threads
    if not threads:
        return []
    tree = profile.tree
    nodes = _nodes(profile, scopes)
    time, sync, wait, running = (
        np.maximum(tree.exclusive(metric).sum, 0) for metric in ("time", "sync_time", "wait_time", "running_time")
    )
    ran_waiting = tree.exclusive("sync_running_time")
    told = ran_waiting.count > 0
    spun = np.where(told, np.clip(ran_waiting.sum, 0, sync), sync)
    left = np.maximum(np.maximum(time - sync, 0) - _waits_of_scopes(tree, wait), 0)
    waited = np.where(np.isin(nodes.part, (_DATA, _COMMUNICATION, _NO_WORK)), nodes.part, _OTHER)
    amounts = _Amounts(nodes, len(threads))
    booked = [(nodes.part, left), (np.full(len(tree), _DEVICE), sync), (waited, wait)]
    for part, values in booked:
        amounts.add(part, values)
    ran = _operators_ran(profile)
    share = np.where(ran < 0, 1.0, ran / np.maximum([thread.operator_ns for thread in threads], 1))
    facts = {"ran": ran} | _facts(nodes, share, time, wait + (sync - spun), spun, running if running.any() else None)
    spun_of = group_sums(nodes.thread, spun, len(threads))
    guessed = group_sums(np.where(told, -1, nodes.thread), spun, len(threads)) != 0
    seen = _seen_waits(tree, scopes, nodes)
    facts |= {
        PARTS[part]: group_sums(np.where(seen == part, nodes.thread, -1), tree.exclusive(WAIT).sum, len(threads))
        for part in (_DEVICE, _OTHER)
        if (seen >= 0).any()
    }
    waits = (seen, np.where(seen >= 0, tree.exclusive(WAIT).sum, 0))
    places = _places(tree, scopes, nodes, [*_with_samples(tree, nodes, booked), waits])
    mains = main_threads(profile)
    longest = max(thread.wall_ns for thread in threads)
    made = []
    for thread in threads:
        main = thread.row in mains
        busy = thread.operator_ns + thread.data_ns
        worth = busy >= max(_BUSY * longest, 1) or thread.cpu_ns >= max(_RAN * longest, 1)
        if thread.wall_ns <= 0 or not (main or worth):
            continue
        row = thread.row
        parts, estimated = _split(thread, amounts.of(row), {name: int(sums[row]) for name, sums in facts.items()})
        named = {PARTS[part]: ns for part, ns in enumerate(parts)}
        shown = {PARTS[part]: found for part, found in places.get(row, {}).items() if parts[part]}
        spun_ns = max(0, min(int(spun_of[row]), parts[_DEVICE])) if parts[_DEVICE] and not guessed[row] else None
        split = Split(row, main, thread.wall_ns, named, estimated, spun_ns, shown)
        made.append((thread.process, not main, -busy, split))
    return [one[-1] for one in sorted(made, key=lambda one: one[:3])]


def _seen_waits(tree: Tree, scopes: Scopes, nodes: _Nodes) -> Rows:
    """By samples of waiting: the part that each node's `wait` belongs to, outside of operators and data loading; -1
    where there is none. A library's own threads that wait for work are idle: no line of the user waits there."""
    if not tree.exclusive(WAIT).sum.any():
        return np.full(len(tree), -1, np.int64)
    parts = {"device": _DEVICE, "sleep": _IDLE}
    of_state = np.array([*(parts.get(state, _OTHER) for state in STATES), -1], np.int64)  # the last: no wait
    elsewhere = nodes.in_operator | nodes.loading | (nodes.part != _PYTHON) | (scopes.user < 0)
    found: Rows = np.where(elsewhere, -1, of_state[states_of(tree)])
    return found


def _with_samples(tree: Tree, nodes: _Nodes, booked: list[tuple[Rows, Rows]]) -> list[tuple[Rows, Rows]]:
    """Where there are CPU samples, they say on which lines Python's own time was; without, the time of regions does."""
    in_python = nodes.part == _PYTHON
    samples = np.where(in_python, tree.exclusive("cpu_sample").sum, 0)
    if not samples.any():
        return booked
    (parts, left), *others = booked
    return [(parts, np.where(in_python, 0, left)), *others, (nodes.part, samples)]


def _waits_of_scopes(tree: Tree, wait: Rows) -> Rows:
    """Waits at the nodes whose `time` holds them: the innermost scope's, also if a line of Python inside it waited."""
    timed = (FrameKind.OPERATOR, FrameKind.REGION, FrameKind.PHASE, FrameKind.API, FrameKind.THREAD, FrameKind.PROCESS)
    scope = nearest(tree.shape, np.isin(tree.kinds, [int(kind) for kind in timed]))
    return group_sums(scope, wait, len(tree))


class _Amounts:
    """Sums per thread of each part inside operators, in data loading outside them, and elsewhere."""

    def __init__(self, nodes: _Nodes, threads: int) -> None:
        self._nodes = nodes
        self._where = np.where(nodes.in_operator, 0, np.where(nodes.loading, 1, 2))
        self._sums = np.zeros(threads * 3 * len(PARTS), np.int64)

    def add(self, part: Rows, values: Rows) -> None:
        key = (self._nodes.thread * 3 + self._where) * len(PARTS) + part
        self._sums += group_sums(np.where(self._nodes.thread >= 0, key, -1), values, len(self._sums))

    def of(self, thread: int) -> list[list[int]]:
        """By place (0: in operators, 1: in data loading, 2: elsewhere), then by part."""
        size = 3 * len(PARTS)
        part: list[list[int]] = self._sums[thread * size : (thread + 1) * size].reshape(3, -1).tolist()
        return part


def _operators_ran(profile: Profile) -> NDArray[np.int64]:
    """Per thread the CPU time in its operators, at most their time; -1 where that was not measured."""
    measured = profile.tree.exclusive("operator_running_time")
    rows = [thread.node.row for thread in profile.threads]
    lasted = np.array([thread.operator_ns for thread in profile.threads], np.int64)
    return np.where(measured.count[rows] > 0, np.clip(measured.sum[rows], 0, np.maximum(lasted, 0)), -1)


def _facts(
    nodes: _Nodes, share: NDArray[np.float64], time: Rows, asleep: Rows, spun: Rows, running: Rows | None
) -> dict[str, NDArray[np.int64]]:
    """Per thread: time asleep in operators, time that others ran for it, CPU time in waits for a device outside
    operators, time of the operators below its lines; of data loading, compilation and communication outside operators
    the CPU time, where it was measured. `share`: of its time in operators, that in which the thread ran."""

    def sums(where: Mask, values: Rows, thread: Rows = nodes.thread) -> NDArray[np.int64]:
        return group_sums(np.where(where, thread, -1), values, len(share))

    facts = {
        "asleep": sums(nodes.in_operator, asleep),
        "away": sums(nodes.in_operator, time, nodes.away) + sums(nodes.in_operator, time, nodes.pooled),
        "spun": sums(~nodes.in_operator & ~nodes.loading, spun),
        "booked": sums(nodes.in_operator, time),
    }
    if running is not None:
        for part, operators in zip((_DATA, _COMPILE, _COMMUNICATION), nodes.within_one, strict=True):
            outside = (nodes.part == part) & ~nodes.in_operator
            own = running if part == _DATA else running - spun  # waits for a device inside are counted for themselves
            in_operators = (sums(operators, time) * share).astype(np.int64)
            facts[PARTS[part]] = np.maximum(sums(outside, own) - in_operators, 0)
    return facts


def _split(thread: Thread, amounts: list[list[int]], facts: dict[str, int]) -> tuple[list[int], tuple[str, ...]]:
    """The parts, which add up to the wall time, and the names of those that are estimates."""
    inside, loading, outside = amounts
    parts = [0] * len(PARTS)

    def take(room: int, part: int, wanted: int) -> int:
        """Books as much of `wanted` as there is room for, and says what room is left."""
        taken = min(max(wanted, 0), room)
        parts[part] += taken
        return room - taken

    operators = min(max(thread.operator_ns, 0), thread.wall_ns)
    room = operators
    for part in (_DEVICE, _OTHER, _COMMUNICATION, _COMPILE):
        room = take(room, part, inside[part])
    take(room, _OPERATORS, room)

    data = min(max(thread.data_ns, 0), thread.wall_ns - operators)
    room = take(data, _DEVICE, loading[_DEVICE])
    room = take(room, _COMPILE, loading[_COMPILE])
    take(room, _DATA, room)

    room = thread.wall_ns - operators - data
    spun = min(facts["spun"], outside[_DEVICE], room)
    compiled, talked = (min(outside[part], room) for part in (_COMPILE, _COMMUNICATION))
    for part in (_DEVICE, _OTHER, _COMMUNICATION, _COMPILE, _NO_WORK):
        room = take(room, part, outside[part])
    ran = spun + (facts["ran"] if facts["ran"] >= 0 else operators - min(facts["asleep"], operators))
    ran += min(facts.get(PARTS[_DATA], data), data) + min(facts.get(PARTS[_COMPILE], compiled), compiled)
    ran += min(facts.get(PARTS[_COMMUNICATION], 0), talked)
    estimated = [PARTS[_PYTHON], PARTS[_IDLE]] if room else []
    # a compiled program's operators are booked afterwards: they ran in the thread's CPU time
    if not operators and (own := min(facts["booked"], max(thread.cpu_ns - ran, 0))):
        room, ran = take(room, _OPERATORS, own), ran + own
        estimated.append(PARTS[_OPERATORS])
    room = take(room, _PYTHON, thread.cpu_ns - ran)
    for part in (_DEVICE, _OTHER):  # what samples saw beyond what scopes had told
        room = take(room, part, facts.get(PARTS[part], 0) - outside[part])
    if room and facts["away"] > 0:
        estimated.append(PARTS[_OTHER])
        room = take(room, _OTHER, facts["away"])
    take(room, _IDLE, room)
    return parts, tuple(estimated)


def _nodes(profile: Profile, scopes: Scopes) -> _Nodes:
    tree, threads = profile.tree, profile.threads
    kinds = tree.kinds
    border = (kinds == int(FrameKind.THREAD)) | (kinds == int(FrameKind.PROCESS))
    place = np.full(len(tree), -1, np.int64)
    for thread in threads:
        place[thread.node.row] = thread.row
    helper = _helper_threads(profile, scopes, border)
    elsewhere = helper != -1
    helped = nearest(tree.shape, elsewhere | border)
    thread_of = np.where(at_rows(elsewhere, helped, 0) > 0, at_rows(helper, helped), at_rows(place, scopes.thread))
    pooled = np.where(thread_of == _NO_THREAD, at_rows(place, scopes.thread), -1)
    thread_of = np.maximum(thread_of, -1)
    operator = kinds == int(FrameKind.OPERATOR)
    in_operator = within(tree, operator, border | elsewhere) >= 0
    loading, compiling, backward, without_work = (
        within(tree, _phase(tree, name), border | elsewhere) >= 0
        for name in ("data loading", "compile", "backward", NO_WORK)
    )
    communicates = communication_frames(tree)[tree.frame_of]
    talking = within(tree, communicates, border) >= 0
    in_region = within(tree, communicates & ~operator, border) >= 0
    part = np.select(
        [compiling, talking, in_operator, loading, without_work],
        [_COMPILE, _COMMUNICATION, _OPERATORS, _DATA, _NO_WORK],
        _PYTHON,
    )
    ran_by = _who_ran_backward(profile, thread_of, in_operator, backward)
    ran = np.where(backward, at_rows(ran_by, thread_of), thread_of)
    away = np.where(ran != thread_of, thread_of, -1)
    outermost = nearest(tree.shape, _first_operators(tree, scopes))  # of the operators around a node
    in_loading, in_compile, in_talk = (
        in_operator & (at_rows(phase, outermost, 0) > 0) for phase in (loading & ~compiling, compiling, in_region)
    )
    return _Nodes(ran, part.astype(np.int64), in_operator, loading, away, pooled, (in_loading, in_compile, in_talk))


def _helper_threads(profile: Profile, scopes: Scopes, border: Mask) -> Rows:
    """At each phase `on another thread` the row of the thread that it names, `_NO_THREAD` where it names a pool of
    threads that the profile does not hold, -1 at every other node."""
    tree = profile.tree
    found = np.full(len(tree), -1, np.int64)
    process_of = {thread.node.row: thread.process for thread in profile.threads}
    longest: dict[tuple[int, str], Thread] = {}  # of the threads of a process that share a name
    for thread in profile.threads:
        known = longest.setdefault((thread.process, thread.name), thread)
        if thread.wall_ns > known.wall_ns:
            longest[thread.process, thread.name] = thread
    for row in np.flatnonzero(_phase(tree, "on another thread") & ~border).tolist():
        detail = tree.node(row).detail
        if "pool" in detail:
            found[row] = _NO_THREAD
            continue
        name = detail.get("thread")
        helper = longest.get((process_of.get(int(scopes.thread[row]), -1), name)) if isinstance(name, str) else None
        if helper is not None:
            found[row] = helper.row
    return found


def _first_operators(tree: Tree, scopes: Scopes) -> Mask:
    """Operators that no operator is around."""
    outermost: Mask = (tree.kinds == int(FrameKind.OPERATOR)) & (above(tree.shape, scopes.inner) < 0)
    return outermost


def _who_ran_backward(profile: Profile, thread_of: Rows, in_operator: Mask, backward: Mask) -> Rows:
    """Per thread the one that ran the backward operators below its lines: itself, as far as its operators say so."""
    threads = profile.threads
    time = np.where(in_operator, np.maximum(profile.tree.exclusive("time").sum, 0), 0)
    forward_ns = group_sums(np.where(backward, -1, thread_of), time, len(threads)).tolist()
    backward_ns = group_sums(np.where(backward, thread_of, -1), time, len(threads)).tolist()
    ran_by = list(range(len(threads)))
    unexplained: dict[int, tuple[int, int]] = {}  # by process: most time in operators that the tree has elsewhere
    for thread in threads:
        more = thread.operator_ns - forward_ns[thread.row] - backward_ns[thread.row]
        unexplained[thread.process] = max(unexplained.get(thread.process, (0, -1)), (more, thread.row))
    for thread in threads:
        own = thread.operator_ns - forward_ns[thread.row]
        worker = unexplained[thread.process][1]
        if 2 * own < backward_ns[thread.row] and worker >= 0 and worker != thread.row:
            ran_by[thread.row] = worker
    return np.array(ran_by, np.int64)


def _phase(tree: Tree, name: str) -> Mask:
    mask: Mask = tree.frame_rows(FrameKind.PHASE, name)[tree.frame_of]
    return mask


def communication_frames(tree: Tree) -> Mask:
    """Frames of operators and regions that are communication."""
    kinds, detail = tree.frames["kind"], tree.frames["detail"]
    able = (kinds == int(FrameKind.OPERATOR)) | (kinds == int(FrameKind.REGION))
    texts = tree.tables.strings
    said = [row for row in np.unique(detail[able]).tolist() if says_communication(int(FrameKind.OPERATOR), texts[row])]
    mask: Mask = able & np.isin(detail, np.array(said, np.int64))
    return mask


def _places(
    tree: Tree, scopes: Scopes, nodes: _Nodes, booked: list[tuple[Rows, Rows]]
) -> dict[int, dict[int, tuple[Place, ...]]]:
    """By thread and part the user's lines with most of it, the largest first."""
    at = [np.flatnonzero((values > 0) & (nodes.thread >= 0) & (scopes.user >= 0)) for _, values in booked]
    row = np.concatenate(at)
    if not len(row):
        return {}
    part = np.concatenate([parts[rows] for (parts, _), rows in zip(booked, at, strict=True)])
    value = np.concatenate([values[rows] for (_, values), rows in zip(booked, at, strict=True)])
    columns = tree.frames
    lines = factorized(columns["file"].astype(np.int64), columns["line"], columns["name"])
    line: NDArray[np.int64] = lines[tree.frame_of[scopes.user[row]]]
    group = factorized(nodes.thread[row], part, line)
    _, first = np.unique(group, return_index=True)
    sums = group_sums(group, value, len(first))
    order = np.lexsort((row[first], -sums, part[first], nodes.thread[row[first]]))
    found: dict[int, dict[int, tuple[Place, ...]]] = {}
    for one in order.tolist():
        at_first = int(first[one])
        here = found.setdefault(int(nodes.thread[row[at_first]]), {})
        known = here.get(int(part[at_first]), ())
        if len(known) < MOST_PLACES:
            here[int(part[at_first])] = (*known, Place(int(row[at_first]), int(sums[one])))
    return found
