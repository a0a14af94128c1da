"""The account of one step, or of a run without steps: the wall time of its thread, split without overlap.

On a core, from what was measured: operators by class (their wall time times the share of it in which the thread ran),
phases, Python by samples. Off a core: data loading, devices, ranks, then what is known of waiting. What nothing
explains is `unexplained`; nothing is ever cut to make a sum come out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import replace
from leadline._once import once
from leadline.analysis.case import CannotTell, Case
from leadline.analysis.columns import Mask, nearest, subtree_sums
from leadline.analysis.contention import DISPATCH_NS
from leadline.analysis.threads import main_threads
from leadline.analysis.waiting import METRIC as WAIT
from leadline.analysis.waiting import in_line_ns
from leadline.analysis.workclass import classes_of_nodes
from leadline.schema import FrameKind
from leadline.verdict.ledger import LABELS, WAITS, Draft, Ledger, span_of_run, span_of_steps
from leadline.verdict.model import Account, Part, Place
from leadline.verdict.outside_operators import fill_outside_operators, runs_on_pool, summed_at
from leadline.verdict.places import Places
from leadline.work.operators import CLASSES

PART_OF_CLASS = {
    **dict.fromkeys(("matrix product", "convolution", "attention", "recurrent"), "products"),
    **dict.fromkeys(
        ("copy", "normalisation", "embedding", "softmax", "pooling", "sort", "element-wise", "fused", "unknown"),
        "moves",
    ),
    "transform": "transforms",
    "decomposition": "decompositions",
    "communication": "ranks",
    "random": "random",
    "optimizer": "optimizer",
    "other": "calling",
    "compilation": "compile",
}
FEW_SAMPLES = 30
_ENOUGH_LOOKS = 20
"""At a waiting thread, to tell what of its wait stood in line for a core."""
_NEARLY = 1.05
"""Parts that add up to so much of the step are measured as exactly as they can be: that they are scaled goes unsaid."""


@once
def account(case: Case) -> Account | None:
    """The account of a step of the process that did most; None where nothing repeats, or too rarely to
    tell a habit from an accident, or no time was measured."""
    try:
        loop = case.loop
    except CannotTell:
        return None
    scopes = case.analysis.scopes
    node = int(scopes.thread[loop.anchors[0]])
    thread = next((one for one in case.profile.threads if one.node.row == node), None)
    ledger = Ledger(case, span_of_steps(case, loop, thread))
    again = case.compiled_again(loop).astype(np.float64)
    ledger.book("compile", again > 0, again)
    wall, parts, notes = _booked(ledger)
    rank = next(
        (one.rank for one in case.profile.processes if one.node.row == int(scopes.process[loop.anchors[0]])), -1
    )
    steps = max(loop.steps // case.ranks, 1)
    return Account("step", wall, steps, rank, parts, notes, int(ledger.called))


def account_of_run(case: Case) -> Account | None:
    """The same of the whole run, where nothing repeats: of the main thread that did most. None where there is none."""
    profile = case.profile
    mains = main_threads(profile)
    threads = [one for one in profile.threads if one.row in mains and one.wall_ns > 0]
    if not threads:
        return None
    thread = max(threads, key=lambda one: (one.operator_ns + one.cpu_ns, one.wall_ns))
    ledger = Ledger(case, span_of_run(case, thread))
    compiling = case.in_phase("compile")
    ledger.book("compile", ledger.mine & compiling, ledger.time.astype(np.float64))
    wall, parts, notes = _booked(ledger)
    rank = next((one.rank for one in profile.processes if one.row == thread.process), -1)
    notes = ("nothing repeats often enough to be a step; leadline.step() marks one", *notes)
    return Account("run", wall, 0, rank, parts, notes, int(ledger.called))


def _booked(ledger: Ledger) -> tuple[int, tuple[Part, ...], tuple[str, ...]]:
    """Wall time, the parts that add up to it, and notes."""
    wall = ledger.span.wall_ns
    notes: list[str] = []
    _operators(ledger)
    _phases(ledger)
    _rare(ledger)
    _waits(ledger)
    fill_outside_operators(ledger, wall)
    if not ledger.span.clocked:
        notes.append("the length of the step is an estimate, the sum of its operators, phases and waits")
    if ledger.booked > wall:  # operators of several threads at a time, or samples that are few
        if ledger.booked > _NEARLY * wall:
            notes.append("parts were measured on several threads and are scaled to the whole")
        ledger.shrink(wall / ledger.booked, list(ledger.drafts))
    ledger.fill("unexplained", wall - ledger.booked, "estimated")
    places = Places(ledger.case)
    parts = [_part(key, draft, wall, places) for key, draft in ledger.drafts.items() if draft.ns >= 0.5]
    parts.sort(key=lambda one: (one.key == "unexplained", -one.ns))
    return int(wall), _exact(parts, int(wall)), tuple(notes)


def _exact(parts: list[Part], wall: int) -> tuple[Part, ...]:
    """Whole nanoseconds that add up: what rounding leaves is the largest part's."""
    if not parts:
        return ()
    rest = wall - sum(one.ns for one in parts)
    first = parts[0]
    return (replace(first, ns=first.ns + rest, share=(first.ns + rest) / wall if wall else 0.0), *parts[1:])


def _part(key: str, draft: Draft, wall: float, places: Places) -> Part:
    group = "unexplained" if key == "unexplained" else "wait" if key in WAITS else "core"
    found: tuple[Place, ...] = ()
    if draft.rows:
        rows, values = np.concatenate(draft.rows), np.concatenate(draft.values)
        found = (
            places.of(rows, values, functions=key in ("python", "imports", "data"))
            if key != "rare"
            else places.calls(rows, values)
        )
    return Part(
        key, LABELS[key], "thread", group, int(draft.ns), draft.ns / wall, draft.known, int(draft.sure_ns), found
    )


def _operators(ledger: Ledger) -> None:
    """Operators by class: the time in which the thread ran, dispatch apart from work."""
    case, tree = ledger.case, ledger.tree
    operator = tree.kinds == int(FrameKind.OPERATOR)
    region = tree.kinds == int(FrameKind.REGION)
    loading = case.in_phase("data loading") | case.in_phase("compile")
    classes = classes_of_nodes(tree)
    time = ledger.time.astype(np.float64)
    waited = np.minimum(
        np.maximum(tree.exclusive("sync_time").sum, 0) + np.maximum(tree.exclusive("wait_time").sum, 0), ledger.time
    )
    time = np.maximum(time - waited, 0)
    own = ledger.mine & (operator | region) & ~loading
    pool = case.in_pool & own
    own &= ~pool
    ledger.book("pool", pool, time)
    ran = ledger.contention.operators_ran
    calls = case.tree.exclusive("call_time").count
    communicates = classes == CLASSES.index("communication")
    called = np.minimum(np.where(operator, calls * DISPATCH_NS, 0.0), time)
    engine = _named_by_engine(case) & operator
    for key in (
        "products",
        "transforms",
        "decompositions",
        "moves",
        "random",
        "optimizer",
        "compile",
        "calling",
        "ranks",
    ):
        numbers = [CLASSES.index(name) for name, part in PART_OF_CLASS.items() if part == key]
        here = own & np.isin(classes, numbers) & ~engine
        if key in ("calling", "ranks"):
            ledger.book(key, here, time if key == "ranks" else time * ran)
        else:
            ledger.book(key, here, (time - called) * ran)
            ledger.book("calling", here, called * ran)
    ledger.book("autograd", own & engine, time * ran)
    launching = ledger.mine & (tree.kinds == int(FrameKind.API)) & ~loading
    blocking = _blocking_copies(ledger, launching)
    ledger.book("calling", launching, np.maximum(time - blocking, 0) * ran)
    rest = own & (classes < 0) & ~engine & ~communicates
    ledger.book("moves", rest & operator, (time - called) * ran)
    ledger.book("calling", rest & operator, called * ran)


def _rare(ledger: Ledger) -> None:
    """What only some steps do, at the line of the loop that does it: operators here, else `fill_outside_operators`."""
    case, tree = ledger.case, ledger.tree
    if not ledger.rare.any():
        return
    line = nearest(tree.shape, case.rare_lines)
    time = np.maximum(tree.exclusive("time").sum, 0).astype(np.float64)
    measured = np.where(ledger.rare, time, 0)
    ledger.book("rare", case.rare_lines, summed_at(line, measured) * ledger.contention.operators_ran)


def _named_by_engine(case: Case) -> Mask:
    return case.matching(FrameKind.OPERATOR, "^autograd::engine::|^torch::autograd::")


def _phases(ledger: Ledger) -> None:
    """What phases hold themselves, and data loading with all that it calls."""
    case, tree = ledger.case, ledger.tree
    phase = tree.kinds == int(FrameKind.PHASE)
    loading = case.in_phase("data loading") & ledger.mine
    time = ledger.time.astype(np.float64)
    samples = np.where(loading, ledger.samples, 0).astype(np.float64)
    of_loading = float(time[loading].sum())
    # what the process itself does for its batches stands in line for a core as everything else; the rest is a wait
    known, ratio = ledger.contention.queue
    ran = of_loading * ledger.contention.loading_ran
    in_line = min(of_loading - ran, ran * ratio) if ledger.contention.loading_ran < 1 else 0.0
    if (stood := _stood_in_line(ledger, loading)) is not None:
        in_line = min(in_line, (of_loading - ran) * stood)
    ledger.queued_loading, ledger.loading_ran = in_line / ledger.steps, ran / ledger.steps
    ledger.fill("core", ledger.queued_loading, known)
    whole = of_loading - in_line
    sampled = float(samples.sum())
    if sampled > 0:
        # samples say on which lines a process that makes its own batches works
        ledger.book("data", loading, samples * min(1.0, whole / sampled))
        ledger.fill("data", max(whole - sampled, 0.0) / ledger.steps, "measured")
    elif of_loading > 0:
        ledger.book("data", loading, time * (whole / of_loading))
    own = ledger.mine & phase & ~case.in_phase("data loading")
    of_python = ledger.contention.python_ran
    for name, key in (
        ("optimizer", "optimizer"),
        ("zero_grad", "optimizer"),
        ("backward", "autograd"),
    ):
        ledger.book(key, own & case.named(FrameKind.PHASE, name), time * of_python)
    called = case.tree.exclusive("call_time").sum.astype(np.float64)
    # of smaller collections no line is known
    ledger.book("collection", ledger.phase("garbage collection") & (case.user_line >= 0), called * of_python)
    ledger.book("saving", ledger.phase("saving"), called)


def _stood_in_line(ledger: Ledger, where: Mask) -> float | None:
    """Of the waiting at these nodes the share that is waiting for a core, by looks; None where too few were taken."""
    waits = ledger.tree.exclusive(WAIT)
    seen = where & (waits.sum > 0)
    if int(waits.count[seen].sum()) < _ENOUGH_LOOKS:
        return None
    return in_line_ns(ledger.tree, seen) / float(waits.sum[seen].sum())


def _waits(ledger: Ledger) -> None:
    """Waits that were measured one by one."""
    case, tree = ledger.case, ledger.tree
    time = ledger.time
    outside = ledger.mine & ~case.in_phase("data loading")
    sync = np.minimum(np.maximum(tree.exclusive("sync_time").sum, 0), np.where(time > 0, time, np.iinfo(np.int64).max))
    asked = np.where(outside, sync, 0).astype(np.float64)
    if not runs_on_pool(case).any():
        ledger.book("device", outside, asked)
    elif (of_step := float(asked.sum()) / ledger.steps) > 0:  # what is waited for may be booked as operations
        known = ledger.drafts["pool"].ns if "pool" in ledger.drafts else 0.0
        ledger.book("pool", outside, asked * (max(of_step - known, 0.0) / of_step))
    copies = _blocking_copies(ledger, outside)
    ledger.book("device", copies > 0, copies)
    classes = classes_of_nodes(tree)
    waited = np.where(outside, np.maximum(tree.exclusive("wait_time").sum, 0), 0).astype(np.float64)
    talks = classes == CLASSES.index("communication")
    ledger.book("ranks", outside & talks, waited)
    ledger.book("io", outside & ~talks, waited)


_LINK_BYTES_NS = 8.0
"""A copy from pageable memory over PCIe reaches 3 to 12 GB/s; what a call takes beyond is waiting."""
_CALL_NS = 20_000.0


def _blocking_copies(ledger: Ledger, where: Mask) -> NDArray[np.float64]:
    """Per node the time of calls that copy between host and device, less what their bytes take on the link: a call of
    147 ms for a copy of 2 µs waits for what was launched before."""
    tree = ledger.tree
    api = ledger.case.matching(FrameKind.API, "(?i)^(cuda|hip)memcpy") & where
    if not api.any():
        return np.zeros(len(tree), np.float64)
    moved = subtree_sums(tree.shape, tree.exclusive("copy_bytes").sum).astype(np.float64)
    calls = np.maximum(tree.exclusive("call_time").count, tree.exclusive("time").count)
    rest = ledger.time - moved / _LINK_BYTES_NS - _CALL_NS * calls
    rest = rest - np.maximum(tree.exclusive("sync_time").sum, 0)
    waits: NDArray[np.float64] = np.where(api & (rest > 0), rest, 0.0).astype(np.float64)
    return waits
