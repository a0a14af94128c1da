"""Which operation waits for which in a data x pipeline parallel step.

Rules (the model of "Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI 2025):

- operations of one stream follow one another: computations of a stage; sends and receives by kind; data-parallel
  collectives;
- a receive precedes the computation that needs it and follows the previous computation of that direction; a send
  follows the computation that made it;
- the first backward receive and send are posted after the forward computation before the last one of the warm-up;
- a chunk's first forward follows its parameter all-gather; after the last computation come layer-norm, embedding and
  gradient reduction, clipping, and the optimizer;
- a communication operation is a wait and a transfer: it starts to move data when its last participant arrives.

Step time is a function of compute durations and transfer durations alone; waiting is never an input.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from leadline._dataclass import dataclass

from . import operations as ops
from .operations import FloatArray, Operation, OperationTrace, StragglerInputError

CLOCK_TOLERANCE_NS = 10e6
"""A value more negative than this is clock skew between machines and counts as zero (10 ms, as in the paper's tool)."""


@dataclass(frozen=True)
class PipelineModel:
    """Dependencies of one step, shared by all steps and data-parallel ranks."""

    parents: tuple[tuple[int, ...], ...]
    group: tuple[int, ...]
    """Rendezvous of each operation, -1 for a computation."""
    groups: tuple[tuple[int, ...], ...]
    across_dp: tuple[bool, ...]
    """Whether a rendezvous also joins all data-parallel ranks."""
    order: tuple[tuple[int, ...], ...]
    """Units (a computation alone, or all operations of one rendezvous) in an order in which they can be simulated."""


def build(trace: OperationTrace) -> PipelineModel:
    """Derives the dependencies from the first step of dp rank 0. Raises StragglerInputError if they contradict."""
    wiring = _Wiring(trace)
    for stage in range(trace.pp_size):
        wiring.connect_stage(stage)
    wiring.pair_neighbours()
    wiring.join_all()
    return wiring.finish()


class _Wiring:
    """Collects edges and rendezvous groups while the model is built."""

    def __init__(self, trace: OperationTrace) -> None:
        self.trace = trace
        self.parents: dict[int, list[int]] = defaultdict(list)
        self.groups: list[list[int]] = []
        self.across: list[bool] = []
        self.at = {(op.kind, op.sequence, op.stage): i for i, op in enumerate(trace.operations)}
        self.start = trace.start_ns[:, 0, 0]
        self.end = trace.end_ns[:, 0, 0]
        self.links: dict[tuple[str, int], list[int]] = {}
        """Sends and receives that reach a neighbour, by (kind, stage), in order."""
        self.total_chunks = 1 + max(op.global_chunk for op in trace.operations)

    def of(self, stage: int, *kinds: str) -> list[int]:
        """Operations of a stage of the given kinds, in time order."""
        found = [i for i, op in enumerate(self.trace.operations) if op.stage == stage and op.kind in kinds]
        return sorted(found, key=lambda i: (self.start[i], self.op(i).sequence, self.op(i).kind))

    def op(self, i: int) -> Operation:
        return self.trace.operations[i]

    def chain(self, members: list[int], after: list[int] | None = None) -> None:
        previous = after or []
        for member in members:
            self.parents[member].extend(previous)
            previous = [member]

    def connect_stage(self, stage: int) -> None:
        compute = self.of(stage, ops.FORWARD, ops.BACKWARD)
        if not compute:
            raise StragglerInputError(f"Stage {stage} has no computation; the trace must hold every pipeline stage.")
        self.chain(compute)
        for direction in ("forward", "backward"):
            self.connect_links(stage, direction)
        self.post_first_backward(stage, compute)
        self.chain(self.of(stage, ops.ALL_GATHER, ops.REDUCE_SCATTER))
        gathered: set[int] = set()
        for gather in reversed(self.of(stage, ops.ALL_GATHER)):
            chunk = self.op(gather).chunk
            users = [i for i in compute if self.op(i).kind == ops.FORWARD and self.op(i).chunk == chunk]
            if users and chunk not in gathered:
                self.parents[users[0]].append(gather)
                gathered.add(chunk)
        self.connect_tail(stage, compute)

    def connect_links(self, stage: int, direction: str) -> None:
        compute = self.of(stage, f"{direction}-compute")
        step = 1 if direction == "forward" else -1
        for verb in ("send", "recv"):
            kind = f"{direction}-{verb}"
            links = self.of(stage, kind)
            self.chain(links)
            shift = step if verb == "send" else -step
            reaches = [0 <= self.op(i).global_chunk + shift < self.total_chunks for i in compute]
            real = [i for i, needed in zip(compute, reaches, strict=True) if needed]
            if len(links) == len(real):
                users, reach = real, [True] * len(real)
            elif len(links) == len(compute):
                users, reach = compute, reaches
            elif len(links) == len(compute) - 1 and verb == "recv" and not reaches[0]:
                users, reach = compute[1:], reaches[1:]
            else:
                raise StragglerInputError(
                    f"Stage {stage} has {len(links)} {kind} operations for {len(compute)} {direction} computations, "
                    f"of which {len(real)} need one; the recording of this stage is incomplete."
                )
            self.links[kind, stage] = [link for link, real_one in zip(links, reach, strict=True) if real_one]
            self.groups += [[link] for link, real_one in zip(links, reach, strict=True) if not real_one]
            for link, user in zip(links, users, strict=True):
                if verb == "send":
                    self.parents[link].append(user)
                    continue
                self.parents[user].append(link)
                position = compute.index(user)
                if position > 0:
                    self.parents[link].append(compute[position - 1])

    def post_first_backward(self, stage: int, compute: list[int]) -> None:
        first = next((n for n, i in enumerate(compute) if self.op(i).kind == ops.BACKWARD), None)
        if first is None or first < 2:
            return
        for kind in ("backward-recv", "backward-send"):
            link = self.at.get((kind, 0, stage))
            if link is not None:
                self.parents[link].append(compute[first - 2])

    def connect_tail(self, stage: int, compute: list[int]) -> None:
        last = max(compute, key=lambda i: self.end[i])
        overlapped = (ops.SEPARATE_ALL_REDUCE, 0, stage) in self.at
        reductions = self.of(stage, ops.REDUCE_SCATTER)
        after = [last]
        collected = self.of(stage, ops.GC)
        self.chain(collected, after)
        after = collected[-1:] or after
        tail = self.of(stage, ops.LAYERNORM) + self.of(stage, ops.EMBEDDING)
        if overlapped:
            after = after + reductions[-1:]
            tail += self.of(stage, ops.SEPARATE_ALL_REDUCE)
            reduced: set[int] = set()
            for reduction in reductions:
                chunk = self.op(reduction).chunk
                made = [i for i in compute if self.op(i).kind == ops.BACKWARD and self.op(i).chunk == chunk]
                if made and chunk not in reduced:
                    self.parents[reduction].append(max(made, key=lambda i: self.end[i]))
                    reduced.add(chunk)
        else:
            tail += reductions
        self.chain(tail + self.of(stage, ops.CLIP) + self.of(stage, ops.OPTIMIZER), after)

    def pair_neighbours(self) -> None:
        for direction, step in (("forward", 1), ("backward", -1)):
            for stage in range(self.trace.pp_size):
                sends = self.links[f"{direction}-send", stage]
                peer = (stage + step) % self.trace.pp_size
                receives = self.links[f"{direction}-recv", peer]
                if len(sends) != len(receives):
                    raise StragglerInputError(
                        f"Stage {stage} sends {len(sends)} {direction} messages but stage {peer} receives "
                        f"{len(receives)}; the trace must hold both sides."
                    )
                self.groups += [[s, r] for s, r in zip(sends, receives, strict=True)]

    def join_all(self) -> None:
        self.across += [False] * len(self.groups)
        for i, op in enumerate(self.trace.operations):
            if op.kind in ops.DATA_PARALLEL:
                self.groups.append([i])
                self.across.append(True)
        for kind, across in ((ops.EMBEDDING, False), (ops.CLIP, True)):
            members = [i for i, op in enumerate(self.trace.operations) if op.kind == kind]
            if members:
                self.groups.append(members)
                self.across.append(across)

    def finish(self) -> PipelineModel:
        count = len(self.trace.operations)
        group = [-1] * count
        for number, members in enumerate(self.groups):
            for member in members:
                group[member] = number
        unit_of: list[int] = []
        units: list[list[int]] = [list(members) for members in self.groups]
        for i in range(count):
            if group[i] < 0:
                unit_of.append(len(units))
                units.append([i])
            else:
                unit_of.append(group[i])
        waiting = [0] * len(units)
        children: list[list[int]] = [[] for _ in units]
        for i in range(count):
            for parent in self.parents[i]:
                children[unit_of[parent]].append(unit_of[i])
                waiting[unit_of[i]] += 1
        ready = [u for u in range(len(units)) if waiting[u] == 0]
        order: list[tuple[int, ...]] = []
        while ready:
            unit = ready.pop()
            order.append(tuple(units[unit]))
            for child in children[unit]:
                waiting[child] -= 1
                if waiting[child] == 0:
                    ready.append(child)
        if len(order) != len(units):
            raise StragglerInputError(
                "The operations wait for one another in a circle; the order of sends and receives in the trace is "
                "contradictory."
            )
        parents = tuple(tuple(self.parents[i]) for i in range(count))
        groups = tuple(tuple(members) for members in self.groups)
        return PipelineModel(parents, tuple(group), groups, tuple(self.across), tuple(order))


def transfer_ns(trace: OperationTrace, model: PipelineModel) -> FloatArray:
    """The part of each communication operation in which data moves: from its last participant's arrival to its end."""
    result: FloatArray = trace.duration_ns.copy()
    for members, across in zip(model.groups, model.across_dp, strict=True):
        arrived = trace.start_ns[list(members)].max(axis=0)
        if across:
            arrived = np.broadcast_to(arrived.max(axis=1, keepdims=True), arrived.shape)
        for member in members:
            moved = trace.end_ns[member] - arrived
            result[member] = np.where(moved <= -CLOCK_TOLERANCE_NS, 0.0, moved)
    return result


def launch_delay_ns(trace: OperationTrace, model: PipelineModel) -> FloatArray:
    """Time between the end of an operation's last dependency and its start, spent in work the trace does not hold."""
    result: FloatArray = np.empty_like(trace.start_ns)
    for i, parents in enumerate(model.parents):
        ready = trace.end_ns[list(parents)].max(axis=0) if parents else np.zeros(trace.start_ns.shape[1:])
        delay = trace.start_ns[i] - ready
        result[i] = np.where(delay <= -CLOCK_TOLERANCE_NS, 0.0, delay)
    return result
