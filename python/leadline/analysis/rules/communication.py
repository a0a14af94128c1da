"""`communication`: the step waits for other ranks.

What runs beside computation costs nothing, so where a trace window tells what was hidden, only the rest counts.
"""

from __future__ import annotations

import numpy as np

from leadline.analysis.case import Group
from leadline.analysis.columns import Mask, subtree_sums
from leadline.analysis.loop import of_steps
from leadline.analysis.measurable import usual_value
from leadline.analysis.overlap import WallSplit, wall_split
from leadline.analysis.ranks import RankView, is_folded_profile
from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.collectives import collectives
from leadline.analysis.rules.words import several
from leadline.schema import EventKind, FrameKind
from leadline.units import abbreviated, duration, percent

ALIKE = 0.7
"""Ranks whose times in communication are nearer than that come to it at about the same time."""


class Communication(Rule):
    name = "communication"
    asks = "Does communication between ranks take a large part of the step?"
    options = (Option("share", 20, "%", "of the step; 10 % is usual for data-parallel training"),)

    def check(self, case: Case, values: Values) -> list[Finding]:
        talk = collectives(case) & case.loop.inside
        if not talk.any():
            raise CannotTell("no communication between ranks was measured")
        outer = case.first_of(talk)
        late, own = _late(case)
        wall = _exposed(case, talk)
        open_part = wall.exposed_communication_ns / wall.communication_ns if wall else 1.0
        made = []
        beside = _beside(case, outer)
        groups = _by_place(case, outer & ~beside) or _by_place(case, outer)
        for group in groups:
            share = group.value / max(case.cost_of_all, 1)
            if share * open_part < values["share"]:
                break
            calls = case.per_step(float(case.calls[group.rows].sum()))
            hidden, advice = _hidden(wall), _advice(case, group)
            expected = 0.4 * own
            passes = _backward_passes(case, group) if advice == _OF_DDP else 1.0
            if passes > 1 and calls >= 0.9 * passes:
                advice, expected = _ONCE_A_STEP, max(expected, 0.8 * (1 - 1 / passes))
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"Communication takes {percent(share)} of {case.cost_name}",
                    case.gain(
                        open_part * group.value,
                        (0, expected, 1),
                        "bound: what is exposed in the trace window, hidden"
                        if wall
                        else "bound: all of it hidden, assuming that none is hidden now",
                    ),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (
                        f"{several(calls, 'collective')}, {duration(case.per_step(group.value))} a step{_sizes(case)}",
                        *hidden,
                        *(("it runs on its own thread, in parallel to the step's operators",) if beside.any() else ()),
                        *late,
                    ),
                    advice,
                    self.learn_more,
                    share,
                    fix=f"{_FIX}={usual_value(_FIX, 1)}" if advice == _OF_DDP else "",
                )
            )
        return made[:1]


_FIX = "bucket_cap_mb"
"""Of DistributedDataParallel only."""
_OF_DDP = (
    "It overlaps the backward pass already: exchange less often (no_sync() while accumulating), in 16 bits (the "
    "communication hook bf16_compress_hook), or do more work between exchanges (a larger batch a rank)."
)
_ONCE_A_STEP = (
    "Exchange once a step: run all micro-batches but the last one below `with model.no_sync():`: each of them "
    "exchanges all gradients now."
)
_IN_FILES = (
    (
        r"torch/distributed/(_composable/)?fsdp/",
        "Exchange less: keep parameters gathered between forward and backward where memory allows "
        "(reshard_after_forward=False), shard within a machine only (a two-dimensional mesh), and gather in 16 bits "
        "(MixedPrecisionPolicy(param_dtype=torch.bfloat16)).",
    ),
    (r"torch/nn/parallel/distributed\.py$", _OF_DDP),
)
_BY_HAND = (
    "Overlap communication with the backward pass as DistributedDataParallel does, exchange less often (once for "
    "several batches) or in 16 bits."
)


_BUFFERS = r"^DistributedDataParallel\._sync\w*_buffers$"
_SENT_BUFFERS = (
    "Before each forward pass the module's buffers are sent from rank 0: set broadcast_buffers=False where ranks keep "
    "them equal themselves or need not, or keep large tensors out of register_buffer()."
)


def _advice(case: Case, group: Group) -> str:
    """By what exchanges: what a wrapper does already is no advice."""
    cost = case.cost_with_all_below[group.rows]
    sends = case.below(case.matching(FrameKind.PYTHON, _BUFFERS))[group.rows]
    if 2 * int(cost[sends].sum()) > int(cost.sum()):
        return _SENT_BUFFERS
    ours = case.loop.inside & (case.calls > 0)  # imports run through files of wrappers that nobody uses
    return next((text for files, text in _IN_FILES if (case.in_files(files) & ours).any()), _BY_HAND)


def _backward_passes(case: Case, group: Group) -> float:
    """How many a step run on the line that exchanges: each begins with a gradient of ones."""
    begins = case.operators("aten::ones_like") & (case.user_line == case.user_line[group.row])
    return case.per_step(float(case.calls[begins].max(initial=0)))


def _by_place(case: Case, outer: Mask) -> list[Group]:
    """By line; in traces without the frames of functions all of it is one place."""
    cost = case.cost_with_all_below
    return case.by_line(outer, cost) or case.grouped(outer, cost, np.zeros(len(outer), np.int64))


def _beside(case: Case, outer: Mask) -> Mask:
    """Communication on other threads than the loop's: the same exchange as the call that waits for it, not another."""
    thread = case.analysis.scopes.thread
    home = {int(thread[row]) for row in case.loop.anchors[:1].tolist()}
    talks = np.isin(thread, list(home)) & outer & (case.cost_with_all_below > 0)
    if case.has_device:
        return np.zeros(len(outer), np.bool_)
    other: Mask = outer & ~np.isin(thread, list(home))
    most = case.cost_with_all_below
    # the longer of the two is what the step holds of it
    if int(most[talks].sum()) >= int(most[other].sum()):
        return other
    return talks


def _exposed(case: Case, talk: Mask) -> WallSplit | None:
    """How the window splits on the devices that communicate; None where none of it was recorded there."""
    events = case.profile.events
    device = events["device"].astype(np.int64)
    work = (EventKind.KERNEL, EventKind.COPY, EventKind.SET, EventKind.COLLECTIVE)
    mine = (device >= 0) & (events["duration_ns"] > 0) & np.isin(events["kind"], [int(kind) for kind in work])
    talks = mine & talk[events["node"].astype(np.int64)]
    if not talks.any():
        return None
    begin = events["start_ns"].astype(np.int64)
    spans = np.stack([begin, begin + events["duration_ns"]], axis=1)
    moves = mine & np.isin(events["kind"], [int(kind) for kind in work[1:3]]) & ~talks
    parts = []
    for one in np.unique(device[talks]).tolist():
        here = device == one
        of_device = spans[here & mine]
        window = np.array([[of_device[:, 0].min(), of_device[:, 1].max()]], np.int64)
        parts.append(wall_split(window, spans[here & mine & ~talks & ~moves], spans[here & talks], spans[here & moves]))
    return max(parts, key=lambda part: part.exposed_communication_ns)


def _hidden(wall: WallSplit | None) -> list[str]:
    if wall is None:
        return []
    exposed, whole = wall.exposed_communication_ns, wall.communication_ns
    return [
        f"{percent(exposed / whole)} of it is exposed in the trace window: nothing else ran on the device meanwhile"
    ]


def _sizes(case: Case) -> str:
    """How large they are, as far as they were recorded one by one: buckets that are too small cost their start."""
    elements = case.profile.table("collectives")["elements"]
    known = elements[elements > 0]
    return f", half of them of at most {abbreviated(float(np.median(known)))} elements" if len(known) else ""


def late_rank(case: Case) -> int:
    """The rank that the others wait for: it spends far less in communication than another; -1 where none does."""
    spent = by_rank(case)
    if len(spent) < 2:
        return -1
    least = min(spent, key=lambda rank: spent[rank])
    return least if spent[least] <= ALIKE * max(spent.values()) else -1


def _late(case: Case) -> tuple[list[str], float]:
    """Who is waited for, and which part of the time in communication would be left without waiting: the rank that
    comes last waits least, so what it spends is the exchange itself."""
    spent = by_rank(case)
    if len(spent) < 2:
        return [], 1.0
    least, most = min(spent, key=lambda rank: spent[rank]), max(spent, key=lambda rank: spent[rank])
    mean = sum(spent.values()) / len(spent)
    if spent[least] > ALIKE * spent[most] or not mean:
        return [], 1.0
    said = (
        f"rank {least} spends {duration(spent[least])} a step in it and rank {most} {duration(spent[most])}: "
        f"the difference is waiting for rank {least}"
    )
    return [said], spent[least] / mean


def by_rank(case: Case) -> dict[int, float]:
    """Time a step that each rank spends in communication, without what sets up; nothing where there are no steps. On
    the thread that spends most, since a backend's thread works at what another one waits for; at most the step, since
    exchanges overlap."""
    if is_folded_profile(case.profile):
        view = RankView(case.profile)
        talk = np.maximum(view.column("communication"), view.column("gpu_time communication")) / view.steps
        return {one.rank: float(ns) for one, ns in zip(view.ranks, talk, strict=True)}
    if case.known_loop is None:
        return {}
    tree = case.tree
    beside = case.in_phase("on another thread")  # the same exchange as the call that began it
    parts = [np.where(here, tree.exclusive("time").sum, 0) for here in (beside, ~beside)]
    times = [np.where(collectives(case), subtree_sums(tree.shape, part), 0) for part in parts]
    outer = case.first_of(collectives(case)) & of_steps(tree, case.analysis.scopes, case.loop.steps)
    ranks = {one.node.row: one.rank for one in case.profile.processes if one.rank >= 0}
    process, thread = case.analysis.scopes.process, np.maximum(case.analysis.scopes.thread, 0)
    found = {}
    for node, rank in ranks.items():
        mine = outer & (process == node)
        most = max(float(np.bincount(thread[mine], time[mine]).max(initial=0)) for time in times)
        spent = most / case.loop.steps
        found[rank] = min(spent, float(case.loop.step_ns))
    return found
