"""Where a program's training (or inference) loop is in its tree, how often it turns, and what one turn takes.

Sums over a whole run hold imports, set-up and first calls, so no share may be taken of them. The loop is found by its
anchors, the phases that occur once per step: their nearest common node is the loop's function, and what hangs below it
is the loop. Every time is then taken without its largest measurement, which is the first call's where that was slow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.columns import Mask, Rows, nearest, preorder
from leadline.analysis.scopes import Scopes
from leadline.profiles import Profile, Tree
from leadline.schema import EventKind, FrameKind

_TRIMMED_FROM = 5  # measurements: below that the largest is too large a part of what is known
_BY_CALLS = "calls of the model"
_BY_BATCHES = "batches loaded"
_STEP_LIMITS = 20  # a measurement this many times the mean of all others was a first call, a page fault, another job


@dataclass(frozen=True)
class Loop:
    """`steps`: turns of the loop; `step_ns`: wall time of one, where it is known, else of its operators; `found_by`:
    what was counted. `inside`: nodes of the loop; `time`: per node exclusive ns over all steps, first calls left out;
    zero outside. `root`: the node above it all; `anchors`: nodes that occur once per step. `work_ns`: the part of a
    step inside operators, phases and waits; `measured_by`: what knew the wall time ("steps", "trace window" or
    nothing)."""

    steps: int
    step_ns: float
    found_by: str
    root: int
    anchors: Rows
    inside: Mask
    time: Rows
    work_ns: float
    measured_by: str


def find_loop(profile: Profile, scopes: Scopes) -> Loop | None:
    """The loop of the process that did most; None where nothing repeats."""
    tree = profile.tree
    counts = tree.exclusive("call_time").count
    anchors, steps, found_by = _anchors(tree, scopes, counts)
    if steps < 1 or not len(anchors):
        return None
    setup = is_setup(tree)
    around = anchors
    if found_by != _BY_CALLS:
        forward = np.flatnonzero(tree.frame_rows(FrameKind.PHASE, "forward")[tree.frame_of])
        around = _with_forward(tree, scopes, anchors, forward, counts, steps)
    root = _function(tree, _common(tree, around), np.where(setup, 0, counts), steps)
    above = np.array(tree.path_rows(root), np.int64)
    inside = _below(tree, root) & ~(setup & ~np.isin(nearest(tree.shape, _setup_frames(tree)), above))
    inside &= nearest(tree.shape, tree.frame_rows(FrameKind.PHASE, "compile")[tree.frame_of]) < 0
    measured = tree.exclusive("time")
    inside &= (measured.count == 0) | (measured.count >= max(1, steps // 10))
    trimmed = without_first_calls(measured.sum, measured.count, measured.max)
    time = np.where(inside, trimmed, 0)
    work = float(time.sum()) / steps
    wall, measured_by = _wall_ns(profile, scopes, int(anchors[0]), steps)
    # operators of several threads at a time add up to more than a wall time that was measured
    return Loop(steps, wall or work, found_by, root, anchors, inside, time, work, measured_by)


def without_first_calls(
    total: NDArray[np.int64], count: NDArray[np.int64], largest: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Sums in which the largest measurement counts as the mean of the others."""
    enough = count >= _TRIMMED_FROM
    others = np.where(enough, total - largest, 0)
    spared = others * (count / np.maximum(count - 1, 1))
    first = enough & (largest > _STEP_LIMITS * others / np.maximum(count - 1, 1))
    return np.where(first, spared.astype(np.int64), total)


def _anchors(tree: Tree, scopes: Scopes, counts: Rows) -> tuple[Rows, int, str]:
    """Nodes that stand for one step each, how many steps there were, and what was counted."""
    kinds = tree.kinds
    phases = kinds == int(FrameKind.PHASE)
    time = tree.inclusive("time").sum

    def named(name: str) -> Rows:
        return np.flatnonzero((tree.frame_rows(FrameKind.PHASE, name)[tree.frame_of]) & phases)

    optimizer, loading, forward = named("optimizer"), named("data loading"), named("forward")
    for found_by, rows in (("optimizer steps", optimizer), (_BY_BATCHES, loading)):
        rows = rows[counts[rows] > 0]
        if not len(rows):
            continue
        first = rows[np.argmax(counts[rows])]
        process = scopes.process[first]
        steps = int(counts[first])
        near = np.concatenate((rows, loading[counts[loading] * 2 >= steps]))
        near = near[(scopes.process[near] == process) & (scopes.thread[near] == scopes.thread[first])]
        near = np.unique(near[counts[near] * 10 >= steps])
        if found_by == _BY_BATCHES:
            steps = _without_ends(scopes, counts, int(first), steps)
        else:
            steps = _with_one_gradient(tree, scopes, counts, int(first), steps)
        return near, steps, found_by
    # what compiled code consists of runs as often as the code has it, and what compiling runs is no turn of a loop
    on_top = nearest(tree.shape, kinds == int(FrameKind.OPERATOR))[np.maximum(tree.parent, 0)] < 0
    forward = forward[on_top[forward]]
    compiling = nearest(tree.shape, tree.frame_rows(FrameKind.PHASE, "compile")[tree.frame_of]) >= 0
    operators = np.flatnonzero((scopes.outer == np.arange(len(tree))) & (counts > 0) & on_top & ~compiling)
    # Of one forward pass there may be many backward passes, such as the rows of a Jacobian.
    passes = scopes.phase[operators]
    inside = operators[(passes >= 0) & ~np.isin(passes, named("backward"))] if len(forward) else operators
    if not len(inside):
        return np.zeros(0, np.int64), 0, ""
    process = scopes.process[inside[np.argmax(time[inside])]]
    inside = inside[scopes.process[inside] == process]
    steps = _marked(tree, scopes, counts, int(process))
    if not (counts[inside] >= steps).any() or not steps:
        steps = _usual(counts[inside], time[inside])
    return inside[counts[inside] >= steps], steps, _BY_CALLS


def _marked(tree: Tree, scopes: Scopes, counts: Rows, process: int) -> int:
    """Steps that a program without an optimizer of torch's has marked (`leadline.step`); 0 where it has not, or hardly.
    Between two marks is one step, so the first has none."""
    spans = tree.frame_rows(FrameKind.PHASE, "step")[tree.frame_of] & (tree.kinds[tree.parent] == int(FrameKind.THREAD))
    count = int(counts[spans & (scopes.process == process)].sum())
    return count + 1 if count + 1 >= _TRIMMED_FROM else 0


_REPEATED = 0.1
"""Of all time: what is called more than once has a loop then."""
_SEVERAL = 1.5


def _with_one_gradient(tree: Tree, scopes: Scopes, counts: Rows, anchor: int, asked: int) -> int:
    """Steps, where an optimizer was asked `asked` times on one line: as many as gradients were computed where several
    optimizers (one for each parameter, as in Pyro) take their turns behind each of them."""
    backward = tree.frame_rows(FrameKind.PHASE, "backward")[tree.frame_of]
    owner = scopes.outer[np.maximum(tree.parent[np.flatnonzero(backward)], 0)]
    owner = np.unique(owner[owner >= 0])
    forward = tree.frame_rows(FrameKind.PHASE, "forward")[tree.frame_of][np.maximum(scopes.phase[owner], 0)]
    owner = owner[forward & (scopes.phase[owner] >= 0) & (scopes.thread[owner] == scopes.thread[anchor])]
    most = int(counts[owner].max(initial=0))
    return most if 0 < most * _SEVERAL <= asked else asked


def _without_ends(scopes: Scopes, counts: Rows, anchor: int, asked: int) -> int:
    """Batches, where a loader was asked `asked` times: the end of each pass over the data answers with none. Told from
    the calls of operators in the thread's modules, of which one batch has as many as the next."""
    inside = (scopes.thread == scopes.thread[anchor]) & (scopes.module >= 0) & (scopes.outer == np.arange(len(counts)))
    found, times = np.unique(counts[inside & (counts * 10 >= asked * 8) & (counts < asked)], return_counts=True)
    return int(found[np.argmax(times)]) if len(found) else asked


def _with_forward(tree: Tree, scopes: Scopes, anchors: Rows, forward: Rows, counts: Rows, steps: int) -> Rows:
    """Forward passes that belong to the same thread: part of the loop wherever the optimizer stands."""
    if not len(forward) or not len(anchors):
        return anchors
    mine = forward[scopes.thread[forward] == scopes.thread[anchors[0]]]
    inner = nearest(tree.shape, _mask(tree, mine))
    busy = np.zeros(len(tree), np.int64)
    np.maximum.at(busy, np.maximum(inner, 0), np.where(inner >= 0, counts, 0))
    return np.unique(np.concatenate((anchors, mine[busy[mine] * 2 >= steps])))


def _mask(tree: Tree, rows: Rows) -> Mask:
    mask = np.zeros(len(tree), np.bool_)
    mask[rows] = True
    return mask


def _usual(counts: Rows, time: Rows) -> int:
    """The number of calls that most time was spent under; what runs once is no loop where anything else takes time."""
    found, group = np.unique(counts, return_inverse=True)
    weight = np.bincount(group, np.maximum(time, 0) + 1)
    if found[0] == 1 and weight[1:].sum() >= _REPEATED * weight.sum():
        found, weight = found[1:], weight[1:]
    return int(found[int(np.argmax(weight))])


def _common(tree: Tree, rows: Rows) -> int:
    """The nearest node above all of them."""
    paths = [tree.path_rows(int(row))[:-1] for row in rows[:2000]]
    shortest = min(len(path) for path in paths)
    common = 0
    for depth in range(shortest):
        if len({path[depth] for path in paths}) > 1:
            break
        common = paths[0][depth]
    return common


def _below(tree: Tree, root: int) -> Mask:
    place, size = preorder(tree.shape)
    inside: Mask = (place >= place[root]) & (place < place[root] + size[root])
    return inside


def _function(tree: Tree, row: int, counts: Rows, steps: int) -> int:
    """The node below which the loop's whole function hangs. A Python node is one line of a function: where other lines
    of it repeat once per step too, they belong to the loop, and what stands above all of them is its place."""
    found, kinds, frames = row, tree.kinds, tree.frames
    place, size = preorder(tree.shape)
    order = np.argsort(place, kind="stable")
    busy = np.concatenate(([0], np.cumsum(counts[order] * 2 >= steps)))
    while row > 0:
        parent = int(tree.parent[row])
        if kinds[row] == int(FrameKind.PYTHON):
            mine = int(tree.frame_of[row])
            for other in tree.shape.children(parent).tolist():
                frame = int(tree.frame_of[other])
                same = all(frames[column][frame] == frames[column][mine] for column in ("file", "name", "first_line"))
                begin = int(place[other])
                if other != row and same and busy[begin + int(size[other])] > busy[begin]:
                    found = parent
                    break
        row = parent
    return found


def is_setup(tree: Tree) -> Mask:
    """Nodes below a constructor or a weight initialiser: they repeat by layer, not by step."""
    found: Mask = nearest(tree.shape, _setup_frames(tree)) >= 0
    return found


def _setup_frames(tree: Tree) -> Mask:
    texts = tree.tables.strings
    frames = np.flatnonzero(tree.frames["kind"] == int(FrameKind.PYTHON))
    names = np.unique(tree.frames["name"][frames])
    setup = [
        row for row in names.tolist() if texts[row].endswith((".__init__", ".reset_parameters", ".from_pretrained"))
    ]
    is_setup = np.isin(tree.frames["name"], np.array(setup, np.int64)) & (tree.frames["kind"] == int(FrameKind.PYTHON))
    found: Mask = is_setup[tree.frame_of]
    return found


def _wall_ns(profile: Profile, scopes: Scopes, anchor: int, steps: int) -> tuple[float, str]:
    """Wall time of one turn of the loop without compilation, and what knew it; 0 where nothing did.

    The phase `step` of a thread holds the time from each step's end to the next, however often the program steps.
    """
    tree = profile.tree
    calls = tree.exclusive("call_time")
    spans = tree.frame_rows(FrameKind.PHASE, "step")[tree.frame_of] & (tree.kinds[tree.parent] == int(FrameKind.THREAD))
    rows = np.flatnonzero(spans & (scopes.process == scopes.process[anchor]) & (calls.count > 0))
    count = int(calls.count[rows].sum())
    if count + 1 >= _TRIMMED_FROM and count * 2 >= steps:
        total = int(without_first_calls(calls.sum[rows], calls.count[rows], calls.max[rows]).sum())
        again = compiled_again(profile, scopes, anchor)
        return max(total - again, 0) / count * ((count + 1) / steps), "steps"
    turn = _turn_ns(profile, scopes, anchor, steps)
    if turn:
        return turn, "batches"
    window = _window_step_ns(profile)
    return window, "trace window" if window else ""


def least_step_ns(profile: Profile, scopes: Scopes, anchor: int) -> int:
    """Wall time of the step that took least, in which the thread was interrupted least; 0 where steps were not timed
    one by one."""
    tree = profile.tree
    calls = tree.exclusive("call_time")
    steps = (
        tree.frame_rows(FrameKind.PHASE, "step")[tree.frame_of]
        | tree.frame_rows(FrameKind.PHASE, "turn")[tree.frame_of]
    )
    rows = np.flatnonzero(steps & (scopes.process == scopes.process[anchor]) & (calls.count > 0))
    return int(calls.min[rows].min()) if len(rows) else 0


def _turn_ns(profile: Profile, scopes: Scopes, anchor: int, steps: int) -> float:
    """Wall time from batch to batch of the loader that has about as many as there are steps; 0 where none has."""
    tree = profile.tree
    calls = tree.exclusive("call_time")
    turns = tree.frame_rows(FrameKind.PHASE, "turn")[tree.frame_of] & (scopes.process == scopes.process[anchor])
    rows = np.flatnonzero(turns & (calls.count + 1 >= _TRIMMED_FROM) & (calls.count * 2 >= steps))
    rows = rows[calls.count[rows] <= 2 * steps]
    if not len(rows):
        return 0.0
    row = rows[np.argmin(np.abs(calls.count[rows] - steps))]
    total = int(without_first_calls(calls.sum[[row]], calls.count[[row]], calls.max[[row]])[0])
    again = compiled_again(profile, scopes, anchor)
    each = max(total - again, 0) / int(calls.count[row])
    return each * max(1, round(int(calls.count[row]) / steps))


def compiled_again(profile: Profile, scopes: Scopes, anchor: int) -> int:
    """Time of compilation behind each place's longest, which is the first: what falls between the ends of steps."""
    tree = profile.tree
    compiling = tree.frame_rows(FrameKind.PHASE, "compile")[tree.frame_of]
    outer = compiling & (nearest(tree.shape, compiling)[np.maximum(tree.parent, 0)] < 0)
    calls = tree.exclusive("call_time")
    rows = np.flatnonzero(outer & (scopes.thread == scopes.thread[anchor]) & (calls.count > 0))
    return int((calls.sum[rows] - calls.max[rows]).sum())


def _window_step_ns(profile: Profile) -> float:
    """Mean step of the trace window, an accident left out; 0 where it holds fewer than two whole ones."""
    events = profile.events
    taken = events["duration_ns"][(events["kind"] == int(EventKind.STEP)) & (events["duration_ns"] > 0)]
    if len(taken) < 2:
        return 0.0
    total, count, largest = (np.array([value]) for value in (taken.sum(), len(taken), taken.max()))
    return float(without_first_calls(total, count, largest)[0]) / len(taken)
