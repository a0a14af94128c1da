"""What no operator and no known wait explains of a step: Python by samples, and waiting by looks.

Where the kernel's counts of a step are known (how long its thread ran, and stood in line for a core), only the places
are samples: what is left of the running time is Python's and the framework's, what is left of the rest is waiting.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.case import Case
from leadline.analysis.columns import Mask, Rows, above, nearest, subtree_sums
from leadline.analysis.functions import METRIC
from leadline.analysis.scopes import in_called
from leadline.analysis.waiting import METRIC as WAIT
from leadline.analysis.waiting import STATES, states_of
from leadline.schema import FrameKind
from leadline.steps.jax_programs import PROGRAM
from leadline.verdict.ledger import WAITS, Counts, Ledger

_OF_STATE = {
    "gil": "lock",
    "lock": "lock",
    "io": "io",
    "child": "child",
    "sleep": "sleep",
    "device": "device",
    "core": "core",
    "network": "network",
    "other": "kernel",
}
_OF_LIBRARY = (
    (
        "process",
        r"/multiprocessing/(?:queues|connection|managers|pool|synchronize)\.py$|/concurrent/futures/process\.py$",
    ),
    ("child", r"/(?:subprocess|multiprocessing/popen_\w+)\.py$"),
    ("network", r"/(?:socket|ssl|http/client)\.py$|/(?:urllib3|requests|httpx|aiohttp|fsspec|boto3|botocore)/"),
)
"""Whose read or write it is, where the standard library's frames above it say so: a pipe of a child, a socket."""
_ASKING = ("io", "lock")
"""States in which somebody else's answer is waited for."""
_ENGINE = r"/torch/(?:_tensor|autograd/(?:__init__|graph|function))\.py$"
"""Whose Python is the backward pass."""
_CALLING_NS = 30_000.0
"""On a core: what calling an operator from Python takes at most, where nothing was sampled."""


def fill_outside_operators(ledger: Ledger, wall: float) -> None:
    """Book what is left of the step after operators, phases and measured waits."""
    counts = ledger.span.counts
    if counts is not None:
        _by_counts(ledger, wall, counts)
    else:
        _python(ledger, 1.0)
        if ledger.booked <= wall or not ledger.span.clocked:
            _off_core(ledger, wall)


def _by_counts(ledger: Ledger, wall: float, counts: Counts) -> None:
    """Parts that were measured stay as they are, as far as the counts leave them room."""
    drafts = ledger.drafts
    if counts.core_wait_ns >= 0:
        drafts.pop("core", None)  # an estimate, where this is a count
    in_line = min(max(counts.core_wait_ns, 0.0), wall)
    running = min(counts.running_ns, wall - in_line)
    blocked = wall - in_line - running
    data = drafts["data"].ns if "data" in drafts else 0.0
    loading = min(ledger.loading_ran, data)
    waited = sum(one.ns for key, one in drafts.items() if key in WAITS) - loading
    spun = max(waited - blocked, 0.0)  # a wait that spins runs
    on_core = [key for key in drafts if key not in WAITS]
    measured = sum(drafts[key].ns for key in on_core)
    left = running - loading - spun - measured
    if left < 0 and measured > 0:
        ledger.shrink(max(measured + left, 0.0) / measured, on_core)
    _fill_core(ledger, max(left, 0.0))
    ledger.fill("core", in_line, "measured")
    if "core" in drafts and in_line > 0:
        waits, states = _looks(ledger)
        here = np.flatnonzero((states == STATES.index("core")) & (waits > 0))
        if len(here):  # only the places
            drafts["core"].rows.append(here)
            drafts["core"].values.append(waits[here] * (in_line / float(waits[here].sum())))
    _fill_blocked(ledger, max(blocked - waited, 0.0), in_line_known=counts.core_wait_ns >= 0)


def _fill_core(ledger: Ledger, left: float) -> None:
    """`left`: ns of a step that the thread ran outside of what was measured; samples say in what."""
    seen = _sampled_outside(ledger)
    samples = float(seen.sum()) / ledger.steps
    if samples > 0:
        _python(ledger, left / samples)
    elif left > 0:
        ledger.fill("calling", min(left, _CALLING_NS * ledger.called), "estimated")


def _fill_blocked(ledger: Ledger, left: float, *, in_line_known: bool) -> None:
    """`left`: ns of a step that the thread neither ran nor (where that is known) stood in line, and that no measured
    wait explains."""
    waits, states = _looks(ledger)
    if in_line_known:
        waits = np.where(states == STATES.index("core"), 0, waits)
    seen = float(waits.sum()) / ledger.steps
    if left > 0 and seen > 0:
        _book_waits(ledger, waits * (left / seen), states)
    else:
        ledger.fill("brief", left, "measured")


def _looks(ledger: Ledger) -> tuple[NDArray[np.float64], Rows]:
    """Waiting outside of data loading, by looks, and what for: a place of STATES per node."""
    tree = ledger.tree
    waits = np.where((ledger.mine | ledger.rare) & ~ledger.case.in_phase("data loading"), tree.exclusive(WAIT).sum, 0)
    return np.maximum(waits, 0).astype(np.float64), states_of(tree)


def _book_waits(ledger: Ledger, values: NDArray[np.float64], states: Rows) -> None:
    asking = np.isin(states, [STATES.index(one) for one in _ASKING]) & (values > 0)
    elsewhere = np.zeros(len(values), np.bool_)
    for key, files in _OF_LIBRARY if asking.any() else ():
        here = asking & in_called(ledger.tree, ledger.case.analysis.scopes, files)
        asking &= ~here
        elsewhere |= here
        ledger.book(key, here, values, "sampled")
    for number, state in enumerate(STATES):
        here = (states == number) & ~elsewhere
        if state == "lock":  # where it is known what the framework's own threads do meanwhile, it is that
            for key, where in (("compile", ledger.case.in_phase("compile")), ("pool", _waits_for_program(ledger.case))):
                ledger.book(key, here & where, values, "sampled")
                here &= ~where
        if here.any():
            ledger.book(_OF_STATE[state], here, values, "sampled")


def runs_on_pool(case: Case) -> Mask:
    """Compiled programs, timed or counted only, where they are the work of the framework's own threads of the CPU."""
    if case.has_device:
        return np.zeros(len(case.tree), np.bool_)
    return case.in_pool | case.matching(FrameKind.OPERATOR, PROGRAM)


def _waits_for_program(case: Case) -> Mask:
    """Waits right below a line that calls a compiled program whose operations run on the framework's threads, or that
    asks for its results: they are for these."""
    programs = runs_on_pool(case)
    if not programs.any():
        return programs
    asked = np.maximum(case.tree.exclusive("sync_time").sum, 0)
    calls = subtree_sums(case.tree.shape, programs.astype(np.int64) + asked) > 0
    calls &= case.tree.kinds == int(FrameKind.PYTHON)
    found: Mask = above(case.tree.shape, calls.astype(np.int64)) > 0
    return found


def outside_operators(case: Case, mine: Mask) -> Mask:
    """Of the nodes `mine` those between operators, and in no phase whose own time holds the Python in it."""
    found: Mask = mine & (case.analysis.scopes.inner < 0) & ~_held_by_phases(case) & ~case.in_phase("compile")
    return found


def _sampled_outside(ledger: Ledger) -> NDArray[np.float64]:
    where = outside_operators(ledger.case, ledger.mine | ledger.rare)
    return np.where(where, ledger.samples, 0).astype(np.float64)


def summed_at(line: Rows, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Per node the sum of what stands at or below it; `line`: the node that each one's value goes to, -1 for none."""
    here = line >= 0
    found: NDArray[np.float64] = np.bincount(line[here], values[here], len(values)).astype(np.float64)
    return found


def _python(ledger: Ledger, factor: float) -> None:
    """Python between operators by samples, where there are any; `factor`: what a sampled nanosecond stands for."""
    case, tree = ledger.case, ledger.tree
    samples = _sampled_outside(ledger) * factor
    if not samples.any():
        return
    if ledger.rare.any():
        line = nearest(tree.shape, case.rare_lines)
        ledger.book("rare", case.rare_lines, summed_at(line, np.where(ledger.rare, samples, 0)), "sampled")
    outside = outside_operators(case, ledger.mine)
    functions = case.sampled(outside, most=200)
    named = np.zeros(len(tree), np.bool_)
    for one in functions:
        named[one.rows] = True
    importing = outside & case.importing
    engine = outside & ~named & ~importing & case.in_files(_ENGINE)
    rest = ~named & ~engine & ~importing
    for key, where in (("python", named), ("imports", importing), ("autograd", engine), ("calling", rest)):
        here = outside & where
        ledger.book(key, here, samples, "sampled")
        number = int(tree.exclusive(METRIC).count[here].sum())
        if number and (draft := ledger.drafts.get(key)) is not None:
            draft.sure_ns = 2 * float(samples[here].sum()) / ledger.steps / number**0.5


def _held_by_phases(case: Case) -> Mask:
    """Nodes below a phase whose own time holds the Python in it."""
    tree = case.tree
    phase = (tree.kinds == int(FrameKind.PHASE)) & (tree.exclusive("time").count > 0)
    border = (tree.kinds == int(FrameKind.THREAD)) | (tree.kinds == int(FrameKind.PROCESS))
    inner = nearest(tree.shape, phase | border)
    held: Mask = phase[np.maximum(inner, 0)] & (inner >= 0)
    return held


def _off_core(ledger: Ledger, wall: float) -> None:
    """The rest of the step: what is known of waiting, else nothing."""
    left = wall - ledger.booked
    if left <= 0:
        return
    waits, states = _looks(ledger)
    if waits.any():
        scale = min(1.0, left / (float(waits.sum()) / ledger.steps))
        _book_waits(ledger, waits * scale, states)
        left = wall - ledger.booked
    if left <= 0:
        return
    on_core = sum(one.ns for key, one in ledger.drafts.items() if key not in WAITS)
    known, ratio = ledger.contention.queue
    seen = ledger.drafts["core"].ns - ledger.queued_loading if "core" in ledger.drafts else 0.0
    ledger.fill("core", min(left, max(on_core * ratio - seen, 0.0)), known)
    left = wall - ledger.booked
    if left > 0 and not ledger.samples.any() and ledger.span.clocked:
        # without samples: Python as far as the thread ran, which the whole run's CPU time says
        ran = ledger.contention.ran
        python = min(left, max(ran * wall - on_core, 0.0)) if ran is not None else 0.0
        ledger.fill("calling", python, "estimated")
