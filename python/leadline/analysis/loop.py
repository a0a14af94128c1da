"""Where a program's training (or inference) loop is in its tree, how often it turns, and what one turn takes.

Sums over a whole run hold imports, set-up and first calls, so no share may be taken of them. The loop is found by its
anchors, the phases that occur once per step: their nearest common node is the loop's function, and what hangs below it
is the loop. Every time is then taken without its largest measurement, which is the first call's where that was slow.
"""

from __future__ import annotations

import numpy as np

from leadline._dataclass import dataclass, replace
from leadline.analysis.columns import Mask, Rows, factorized, group_sums, nearest, preorder
from leadline.analysis.scopes import Scopes
from leadline.profiles import Profile, Tree
from leadline.schema import FrameKind
from leadline.steps import NoSteps, Steps
from leadline.steps.jax_programs import function_of, turns_of
from leadline.steps.model import COUNTED, LAUNCHES, MODULE_CALLS, PROGRAM_CALLS
from leadline.steps.of_profile import steps_of
from leadline.steps.recorded import WARM, without_first_calls

BY_SAMPLES = "CPU samples"
"""What knew how long a step is, where no clock did: CPU time of its thread, without compiling and imports."""
_SEVERAL = 4


@dataclass(frozen=True)
class Loop:
    """`steps`: turns of the loop; `step_ns`: wall time of one, where it is known, else of its operators; `found_by`:
    what was counted. `inside`: nodes of the loop; `time`: per node exclusive ns over all steps, first calls left out;
    zero outside. `root`: the node above it all; `anchors`: nodes that occur once per step. `work_ns`: the part of a
    step inside operators, phases and waits; `measured_by`: what knew the wall time, empty: nothing did; `of`: the steps
    as they are known to all."""

    steps: int
    step_ns: float
    found_by: str
    root: int
    anchors: Rows
    inside: Mask
    time: Rows
    work_ns: float
    measured_by: str
    of: Steps


def find_loop(profile: Profile, scopes: Scopes) -> Loop | None:
    """The loop of the process that did most; None where nothing repeats."""
    found = steps_of(profile)
    if isinstance(found, NoSteps):
        return None
    tree, steps = profile.tree, found.number
    counts = tree.exclusive("call_time").count
    anchors = np.array(found.main.marks or _thread(profile, found), np.int64)
    constructor = nearest(tree.shape, _setup_frames(tree))
    setup = constructor >= 0
    around = anchors
    if found.rests_on not in (MODULE_CALLS, PROGRAM_CALLS, LAUNCHES):
        forward = np.flatnonzero(tree.frame_rows(FrameKind.PHASE, "forward")[tree.frame_of])
        around = _with_forward(tree, scopes, anchors, forward, counts, steps)
    root = _function(tree, _common(tree, around), np.where(setup, 0, counts), steps)
    above = np.array(tree.path_rows(root), np.int64)
    inside = _below(tree, root) & ~(setup & ~np.isin(constructor, above))
    inside &= nearest(tree.shape, tree.frame_rows(FrameKind.PHASE, "compile")[tree.frame_of]) < 0
    inside &= often(tree, scopes, steps)
    time = np.where(inside, _without_first_calls(tree, found, inside), 0)
    work = float(time.sum()) / steps
    least = work
    if found.rests_on == LAUNCHES:  # of the CPU's part little is known; no step is shorter than its kernels
        least = max(work, float(np.where(inside, tree.exclusive("gpu_time").sum, 0).sum()) / steps)
    # operators of several threads at a time add up to more than a wall time that was measured
    return Loop(
        steps, found.base_ns or least, COUNTED[found.rests_on], root, anchors, inside, time, work, found.timed_by, found
    )


def of_all_shapes(tree: Tree, scopes: Scopes, *columns: Rows) -> list[Rows]:
    """Of each column per node the sum over all nodes of its name in operators of one name and place: one that is called
    with several shapes is a node for each of them. What is no operator, nor inside of one, keeps its own value."""
    names = tree.frames["name"][tree.frame_of].astype(np.int64)
    outer = np.flatnonzero(scopes.outer == np.arange(len(tree)))
    group = np.full(len(tree) + 1, -1, np.int64)  # the last: outside of operators
    found = [values.copy() for values in columns]
    if len(outer):
        group[outer] = factorized(tree.parent[outer].astype(np.int64), names[outer])
        within = np.flatnonzero(group[scopes.outer] >= 0)
        key = factorized(group[scopes.outer[within]], names[within])
        for sums, values in zip(found, columns, strict=True):
            sums[within] = group_sums(key, values[within], int(key.max()) + 1)[key]
    return found


def often(tree: Tree, scopes: Scopes, steps: int, fewest: int = 1) -> Mask:
    """Nodes that are measured in a tenth of the steps, at least `fewest` times and with any shapes, or are not measured
    at all."""
    measured = tree.exclusive("time").count
    (calls,) = of_all_shapes(tree, scopes, measured)
    found: Mask = (measured == 0) | (calls >= max(fewest, steps // 10))
    return found


def of_steps(tree: Tree, scopes: Scopes, steps: int) -> Mask:
    """Without what runs once in several steps, as ranks do when they set up an exchange."""
    return often(tree, scopes, steps, 2 if steps >= _SEVERAL else 1)


def _without_first_calls(tree: Tree, found: Steps, inside: Mask) -> Rows:
    measured = tree.exclusive("time")
    # where steps at the beginning are left out of the mean, so is what made them long
    if found.warm_up and found.timed_by in ("trace window", "steps"):
        return without_first_calls(measured.sum, measured.count, measured.max, WARM)
    # A call that was interrupted, as any may be on a busy machine, is part of some step: only what takes longer than a
    # step is none.
    step_ns = found.base_ns or float(measured.sum[inside].sum()) / max(found.number, 1)
    return without_first_calls(measured.sum, measured.count, measured.max, least_ns=step_ns)


def widened(tree: Tree, loop: Loop, more: Mask) -> Loop:
    """The loop with these nodes, too."""
    if not more.any():
        return loop
    time = np.where(more, _without_first_calls(tree, loop.of, loop.inside), loop.time)
    work = float(time.sum()) / loop.steps
    step = loop.step_ns if loop.measured_by else max(loop.step_ns, work)
    return replace(loop, inside=loop.inside | more, time=time, work_ns=work, step_ns=step)


def _thread(profile: Profile, found: Steps) -> list[int]:
    """Where the tree does not tell what occurs once a step: the node of the thread that crosses the marks."""
    if found.main.thread >= 0:
        return [profile.threads[found.main.thread].node.row]
    return [profile.processes[found.main.process].node.row]


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
    module = nearest(tree.shape, tree.kinds == int(FrameKind.MODULE)) >= 0
    found: Mask = is_setup[tree.frame_of] & ~module  # what a module makes in its call is work of every step
    return found


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
    own = turns_of(tree, rows, {"", function_of(tree.node(anchor).name)})  # those of other programs are of other loops
    return int(calls.min[own].min()) if own else 0
