"""Which layer and phase a task belongs to, without synchronising anything (Daydream, section 4.3).

Forward tasks lie in time inside a module's span on their thread. Backward operators lead to their forward operator by
autograd's sequence number or by the fwdbwd flow. Device work belongs where its launch belongs. Where a trace has no
module spans, a layer is an outermost forward operator and its place in the step: `aten::conv2d (3)`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leadline._dataclass import dataclass
from leadline.steps import Step
from leadline.steps.names import phase_of
from leadline.trace.event_types import is_backward_operator
from leadline.trace.tables import Kind
from leadline.whatif.build.cpu import Timeline
from leadline.whatif.build.draft import Draft
from leadline.whatif.kinds import PHASE_NAMES, IntArray, Phase, TaskKind
from leadline.whatif.residuals import count_so_far
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
    _beside(draft, steps)


def _beside(draft: Draft, steps: Sequence[Step]) -> None:
    """Mark device work that goes on when its step was done, that of before the window when the first step was."""
    device = np.flatnonzero(np.isin(draft["kind"], [TaskKind.GPU, TaskKind.COMM]) & (draft["row"] >= 0))
    place = {step.number: at for at, step in enumerate(steps)}
    at = np.array([place.get(number, 0) for number in draft["step"][device].tolist()], dtype=np.int64)
    done = np.array([step.done_ns for step in steps], dtype=np.int64)
    draft["beside"][device] = draft.trace.end_ns[draft["row"][device]] > done[at]


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
    on = trace.events["thread"][modules]
    elsewhere = ~np.isin(on, np.array(list(by_thread), dtype=np.int64))
    for timeline in timelines:
        # module spans of a thread that runs no operators come from a recorder that numbers threads on its own
        mine = modules[(on == timeline.thread) | (elsewhere if timeline.thread == main else False)]
        if mine.size:
            _contained(draft, timeline, mine)
    covered = _modules_cover(draft, timelines)
    if not covered:
        for timeline in timelines:
            _by_operator(draft, timeline)
    _backward(draft, timelines)
    _rest(draft, timelines)


def _contained(draft: Draft, timeline: Timeline, modules: IntArray) -> None:
    trace = draft.trace
    start = draft["start_ns"][timeline.ids]
    first = np.searchsorted(start, trace.events["start_ns"][modules])
    last = np.searchsorted(start, trace.end_ns[modules])
    layer = np.array([draft.layer_id(trace.strings[name]) for name in _distinct(trace.events["name"][modules])])
    ids = timeline.ids
    found = draft["layer"][ids]
    named = np.zeros(len(trace.strings), dtype=np.int64)
    named[_distinct(trace.events["name"][modules])] = layer
    rows = zip(first.tolist(), last.tolist(), named[trace.events["name"][modules]].tolist(), strict=True)
    for low, high, what in rows:  # outer first, so the innermost stays
        found[low:high] = what
    draft["layer"][ids] = found


def _distinct(values: IntArray) -> list[int]:
    """Each value once, in the order of their first appearance."""
    found, first = np.unique(values, return_index=True)
    ordered: list[int] = found[np.argsort(first, kind="stable")].tolist()
    return ordered


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
    names = list(draft.names)
    name = draft["name"][tasks[forward]].astype(np.int64)
    number = count_so_far(draft["step"][tasks[forward]] * len(names) + name) + 1
    key = number * len(names) + name
    distinct = _distinct(key)
    if distinct:
        layer = np.array([draft.layer_id(f"{names[one % len(names)]} ({one // len(names)})") for one in distinct])
        by_key = np.argsort(distinct, kind="stable")
        found = layer[by_key][np.searchsorted(np.array(distinct)[by_key], key)]
        table = np.zeros(timeline.ids.size, dtype=np.int64)
        table[roots[forward]] = found
        unset = draft["layer"][timeline.ids] == 0
        draft["layer"][timeline.ids[unset]] = table[timeline.root][unset]


@dataclass(frozen=True)
class _Known:
    """Layers by a key: keys in order, the layer of each."""

    key: IntArray
    layer: IntArray

    @staticmethod
    def of(key: IntArray, layer: IntArray) -> _Known:
        """Of several layers of one key the last counts."""
        told = layer > 0
        distinct, last = np.unique(key[told][::-1], return_index=True)
        return _Known(distinct, layer[told][::-1][last].astype(np.int64))

    def at(self, key: IntArray) -> IntArray:
        """The layer of each key, 0 for one that is not known."""
        if not self.key.size:
            return np.zeros(key.size, dtype=np.int64)
        place = np.minimum(np.searchsorted(self.key, key), self.key.size - 1)
        found: IntArray = np.where(self.key[place] == key, self.layer[place], 0)
        return found


def _backward(draft: Draft, timelines: Sequence[Timeline]) -> None:
    """Give backward operators the layer of their forward operator, and parameter gradients that of the one before."""
    trace = draft.trace
    numbers, layers = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for timeline in timelines:
        sequence = trace.events["sequence"][draft["row"][timeline.ids]]
        forward = (sequence >= 0) & (draft["phase"][timeline.ids] == Phase.FORWARD)
        numbers.append(sequence[forward])
        layers.append(draft["layer"][timeline.ids[forward]])
    of_sequence = _Known.of(np.concatenate(numbers), np.concatenate(layers))
    flows = np.array(
        [(flow.forward_thread, flow.forward_ns, flow.backward_thread, flow.backward_ns) for flow in trace.flows],
        dtype=np.int64,
    ).reshape(-1, 4)
    of_flow = _flow_layers(draft, timelines, flows)
    names = list(draft.names)
    accumulate = np.array([_ACCUMULATE in name for name in names], dtype=np.bool_)
    for timeline in timelines:
        mine = flows[:, 2] == timeline.thread
        _backward_thread(draft, timeline, of_sequence, _Known.of(flows[mine, 3], of_flow[mine]), accumulate)


def _flow_layers(draft: Draft, timelines: Sequence[Timeline], flows: IntArray) -> IntArray:
    """The layer at the start of each flow, 0 for none. `flows`: forward thread and moment, backward thread and
    moment."""
    found = np.zeros(len(flows), dtype=np.int64)
    for timeline in timelines:
        mine = np.flatnonzero(flows[:, 0] == timeline.thread)
        at = np.searchsorted(draft["start_ns"][timeline.ids], flows[mine, 1], side="right") - 1
        found[mine] = np.where(at >= 0, draft["layer"][timeline.ids[np.maximum(at, 0)]], 0)
    return found


def _backward_thread(
    draft: Draft, timeline: Timeline, of_sequence: _Known, of_flow: _Known, accumulate: np.ndarray
) -> None:
    ids = timeline.ids
    backward = draft["phase"][ids] == Phase.BACKWARD
    if not backward.any():
        return
    places = np.flatnonzero(backward)
    own = of_sequence.at(draft.trace.events["sequence"][draft["row"][ids[places]]])
    own = np.where(own > 0, own, of_flow.at(draft["start_ns"][ids[places]]))
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
