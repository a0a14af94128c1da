"""Which layer and phase a task belongs to, without synchronising anything (Daydream, section 4.3).

Forward tasks lie in time inside a module's span on their thread. Backward operators lead to their forward operator by
autograd's sequence number or by the fwdbwd flow. Device work belongs where its launch belongs. Where a trace has no
module spans, a layer is an outermost forward operator and its place in the step: `aten::conv2d (3)`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leadline.trace.meaning import is_backward_operator, phase_of
from leadline.trace.steps import Step
from leadline.trace.tables import Kind
from leadline.whatif.build.cpu import Timeline
from leadline.whatif.build.draft import Draft
from leadline.whatif.kinds import PHASE_NAMES, IntArray, Phase, TaskKind
from leadline.whatif.tables import PYTHON

_ACCUMULATE = "AccumulateGrad"
_MOVES = ("aten::copy_", "aten::to", "aten::_to_copy", "aten::pin_memory")  # a batch on its way to the device


def assign(draft: Draft, timelines: Sequence[Timeline], steps: Sequence[Step], main: int) -> None:
    """Fill the step, phase and layer of every task."""
    _steps(draft, steps)
    _phases(draft, timelines)
    _inherit(draft, "phase")
    _layers(draft, timelines, main)
    _inherit(draft, "layer")
    device = np.flatnonzero(np.isin(draft["kind"], [TaskKind.GPU, TaskKind.COMM]) & (draft["parent"] >= 0))
    draft["operator"][device] = draft["operator"][draft["parent"][device]]


def _steps(draft: Draft, steps: Sequence[Step]) -> None:
    starts = np.array([step.start_ns for step in steps], dtype=np.int64)
    numbers = np.array([step.number for step in steps], dtype=np.int64)
    at = np.searchsorted(starts, draft["start_ns"], side="right") - 1
    own = np.where(at >= 0, numbers[np.maximum(at, 0)], -1)
    device = np.isin(draft["kind"], [TaskKind.GPU, TaskKind.COMM])
    parent = draft["parent"]
    launched = device & (parent >= 0)
    own[launched] = own[parent[launched]]
    own[draft.carried] = -1
    draft["step"][:] = own


def _inherit(draft: Draft, column: str) -> None:
    """Device work and added CPU tasks take the value of their launch; Python tasks that of the task before."""
    values = draft[column]
    parent = draft["parent"]
    later = np.flatnonzero((draft["row"] < 0) | np.isin(draft["kind"], [TaskKind.GPU, TaskKind.COMM]))
    launched = later[parent[later] >= 0]
    values[launched] = values[parent[launched]]


def _phases(draft: Draft, timelines: Sequence[Timeline]) -> None:
    trace = draft.trace
    phase_of_name = np.zeros(len(trace.strings), dtype=np.uint8)
    for row, name in enumerate(trace.strings):
        phase_of_name[row] = PHASE_NAMES.index(phase_of(name) or "other")
    regions = trace.of_kind(Kind.REGION, Kind.PHASE)
    regions = regions[phase_of_name[trace.events["name"][regions]] > 0]
    python = draft.names.get(PYTHON, -1)
    without_numbers = not bool((trace.events["sequence"] >= 0).any())
    first_backward = _first_backward(draft) if without_numbers else {}
    for timeline in timelines:
        lane = np.flatnonzero((draft["lane"] == timeline.lane) & (draft["kind"] != TaskKind.GPU))
        lane = lane[np.lexsort((draft["tie"][lane], draft["start_ns"][lane]))]
        start = draft["start_ns"][lane]
        found = np.zeros(lane.size, dtype=np.uint8)
        mine = regions[trace.events["thread"][regions] == timeline.thread]  # outer first
        first = np.searchsorted(start, trace.events["start_ns"][mine]).tolist()
        last = np.searchsorted(start, trace.end_ns[mine]).tolist()
        for low, high, phase in zip(first, last, phase_of_name[trace.events["name"][mine]].tolist(), strict=True):
            found[low:high] = phase
        operators = draft["operator"][lane]
        backward = np.array([is_backward_operator(name) for name in draft.names], dtype=np.bool_)
        found[(found == 0) & backward[operators]] = int(Phase.BACKWARD)
        forward = np.isin(lane, _forward_tasks(draft, timeline))
        # a closure runs forward and backward inside the optimizer's step, whose own operators have no numbers
        found[(found == Phase.OPTIMIZER) & backward[operators]] = int(Phase.BACKWARD)
        own = found.copy()
        own[((found == 0) | (found == Phase.OPTIMIZER)) & forward] = int(Phase.FORWARD)
        if without_numbers:
            own[(found == 0) & _before_backward(draft, lane, first_backward) & (draft["row"][lane] >= 0)] = int(
                Phase.FORWARD
            )
        draft["phase"][lane] = _fill(own, draft["name"][lane] == python, draft["step"][lane])


def _first_backward(draft: Draft) -> dict[int, int]:
    """By step, when its first backward operator began."""
    backward = np.array([is_backward_operator(name) for name in draft.names], dtype=np.bool_)
    ids = np.flatnonzero(backward[draft["name"]] & (draft["kind"] == TaskKind.CPU))
    found: dict[int, int] = {}
    for step, start in zip(draft["step"][ids].tolist(), draft["start_ns"][ids].tolist(), strict=True):
        found[step] = min(found.get(step, start), start)
    return found


def _before_backward(draft: Draft, tasks: IntArray, first: dict[int, int]) -> np.ndarray:
    """Which CPU tasks lie before the backward pass of their step, for traces without autograd's numbers."""
    moves = np.array([name in _MOVES for name in draft.names], dtype=np.bool_)
    limits = {step: first.get(step, np.iinfo(np.int64).min) for step in np.unique(draft["step"][tasks]).tolist()}
    until = np.array([limits[step] for step in draft["step"][tasks].tolist()], dtype=np.int64)
    work = (draft["kind"][tasks] == TaskKind.CPU) & ~moves[draft["operator"][tasks]]
    before: np.ndarray = work & (draft["start_ns"][tasks] < until)
    return before


def _forward_tasks(draft: Draft, timeline: Timeline) -> IntArray:
    """Tasks of outermost operators that hold an operator with a sequence number; backward ones are known before."""
    sequenced = draft.trace.events["sequence"][draft["row"][timeline.ids]] >= 0
    holds = np.zeros(timeline.ids.size, dtype=np.bool_)
    holds[timeline.root[sequenced]] = True
    found: IntArray = timeline.ids[holds[timeline.root]]
    return found


def _fill(phase: np.ndarray, python: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Tasks without a phase between two of the same phase and step belong to it; Python goes with what follows it."""
    known = np.where(phase > 0, np.arange(phase.size), -1)
    before = np.maximum.accumulate(known)
    after = np.minimum.accumulate(np.where(phase > 0, np.arange(phase.size), phase.size)[::-1])[::-1]
    inside = (before >= 0) & (after < phase.size)
    left, right = np.maximum(before, 0), np.minimum(after, max(phase.size - 1, 0))
    same = inside & (phase[left] == phase[right]) & (step[left] == step[right]) & (phase == 0)
    filled = phase.copy()
    filled[same] = phase[left][same]
    follows = python & (filled == 0) & (after < phase.size)
    filled[follows] = phase[right][follows]
    return filled


def _layers(draft: Draft, timelines: Sequence[Timeline], main: int) -> None:
    trace = draft.trace
    by_thread = {timeline.thread: timeline for timeline in timelines}
    modules = trace.of_kind(Kind.MODULE)
    for timeline in timelines:
        # module spans of a thread that runs no operators come from a recorder that numbers threads on its own
        mine = [
            row
            for row in modules.tolist()
            if trace.events["thread"][row] == timeline.thread
            or (timeline.thread == main and int(trace.events["thread"][row]) not in by_thread)
        ]
        if mine:
            _contained(draft, timeline, mine)
    covered = _modules_cover(draft, timelines)
    if not covered:
        for timeline in timelines:
            _by_operator(draft, timeline)
    _backward(draft, timelines)
    _rest(draft, timelines)


def _contained(draft: Draft, timeline: Timeline, modules: Sequence[int]) -> None:
    trace = draft.trace
    start = draft["start_ns"][timeline.ids]
    for row in modules:  # outer first, so the innermost stays
        low, high = int(trace.events["start_ns"][row]), int(trace.end_ns[row])
        first, last = np.searchsorted(start, [low, high])
        draft["layer"][timeline.ids[first:last]] = draft.layer_id(trace.name(row))


def _modules_cover(draft: Draft, timelines: Sequence[Timeline]) -> bool:
    """Whether module spans hold most forward operators."""
    ids = np.concatenate([item.ids for item in timelines]) if timelines else np.zeros(0, dtype=np.int64)
    forward = ids[draft["phase"][ids] == Phase.FORWARD]
    return bool(forward.size) and bool((draft["layer"][forward] > 0).mean() > 0.5)


def _by_operator(draft: Draft, timeline: Timeline) -> None:
    """Layers by outermost forward operator and its number within the step."""
    roots = np.unique(timeline.root)
    tasks = timeline.ids[roots]
    forward = draft["phase"][tasks] == Phase.FORWARD
    seen: dict[tuple[int, int], int] = {}
    names = list(draft.names)
    steps, of_name = draft["step"][tasks[forward]].tolist(), draft["name"][tasks[forward]].tolist()
    found = []
    for key in zip(steps, of_name, strict=True):
        seen[key] = number = seen.get(key, 0) + 1
        found.append(draft.layer_id(f"{names[key[1]]} ({number})"))
    if found:
        table = np.zeros(timeline.ids.size, dtype=np.int64)
        table[roots[forward]] = found
        unset = draft["layer"][timeline.ids] == 0
        draft["layer"][timeline.ids[unset]] = table[timeline.root][unset]


def _backward(draft: Draft, timelines: Sequence[Timeline]) -> None:
    """Give backward operators the layer of their forward operator, and parameter gradients that of the one before."""
    trace = draft.trace
    layer_of_sequence: dict[int, int] = {}
    for timeline in timelines:
        rows = draft["row"][timeline.ids]
        sequence = trace.events["sequence"][rows]
        forward = (sequence >= 0) & (draft["phase"][timeline.ids] == Phase.FORWARD)
        for number, layer in zip(
            sequence[forward].tolist(), draft["layer"][timeline.ids[forward]].tolist(), strict=True
        ):
            if layer:
                layer_of_sequence[number] = layer
    layer_of_flow = _flow_layers(draft, timelines)
    names = list(draft.names)
    accumulate = np.array([_ACCUMULATE in name for name in names], dtype=np.bool_)
    for timeline in timelines:
        _backward_thread(draft, timeline, layer_of_sequence, layer_of_flow, accumulate)


def _flow_layers(draft: Draft, timelines: Sequence[Timeline]) -> dict[tuple[int, int], int]:
    """(thread, start) of a backward operator to the layer at the start of its flow."""
    by_thread = {timeline.thread: timeline for timeline in timelines}
    found: dict[tuple[int, int], int] = {}
    for flow in draft.trace.flows:
        timeline = by_thread.get(flow.forward_thread)
        if timeline is None:
            continue
        start = draft["start_ns"][timeline.ids]
        at = int(np.searchsorted(start, flow.forward_ns, side="right")) - 1
        if at >= 0 and draft["layer"][timeline.ids[at]]:
            found[(flow.backward_thread, flow.backward_ns)] = int(draft["layer"][timeline.ids[at]])
    return found


def _backward_thread(
    draft: Draft,
    timeline: Timeline,
    layer_of_sequence: dict[int, int],
    layer_of_flow: dict[tuple[int, int], int],
    accumulate: np.ndarray,
) -> None:
    ids = timeline.ids
    backward = draft["phase"][ids] == Phase.BACKWARD
    if not backward.any():
        return
    places = np.flatnonzero(backward)
    sequence = draft.trace.events["sequence"][draft["row"][ids[places]]].tolist()
    start = draft["start_ns"][ids[places]].tolist()
    own = np.array(
        [
            layer_of_sequence.get(number, 0) or layer_of_flow.get((timeline.thread, begin), 0)
            for number, begin in zip(sequence, start, strict=True)
        ],
        dtype=np.int64,
    )
    of_root = np.zeros(ids.size, dtype=np.int64)
    known = np.flatnonzero(own)[::-1]  # the first of a root is written last
    of_root[timeline.root[places[known]]] = own[known]
    roots = timeline.root[places]
    layer = of_root[roots]
    last = np.maximum.accumulate(np.where(layer > 0, np.arange(places.size), -1))
    gradient = (layer == 0) & accumulate[draft["name"][ids[roots]]] & (last >= 0)
    layer[gradient] = layer[last[gradient]]
    # recomputation inside backward has module spans of its own; they stay
    kept = draft["layer"][ids[places]]
    draft["layer"][ids[places]] = np.where(kept > 0, kept, layer)


def _rest(draft: Draft, timelines: Sequence[Timeline]) -> None:
    """What has no layer yet gets its phase's region or its outermost operator as one."""
    trace = draft.trace
    regions = trace.of_kind(Kind.REGION, Kind.PHASE)
    names = list(draft.names)
    for timeline in timelines:
        ids = timeline.ids
        start = draft["start_ns"][ids]
        special = np.isin(draft["phase"][ids], [Phase.OPTIMIZER, Phase.ZERO_GRAD, Phase.DATA_LOADING])
        special &= draft["layer"][ids] == 0
        before = np.concatenate(([0], np.cumsum(special)))
        mine = regions[trace.events["thread"][regions] == timeline.thread]
        first, last = np.searchsorted(start, trace.events["start_ns"][mine]), np.searchsorted(start, trace.end_ns[mine])
        holds = before[last] > before[np.minimum(first, last)]
        for row, low, high in zip(mine[holds].tolist(), first[holds].tolist(), last[holds].tolist(), strict=True):
            draft["layer"][ids[low:high][special[low:high]]] = draft.layer_id(trace.name(row))
        left = ids[draft["layer"][ids] == 0]
        for operator in np.unique(draft["operator"][left]).tolist():
            draft["layer"][left[draft["operator"][left] == operator]] = draft.layer_id(names[operator])
