"""What each event of a window waited for: edges between events, and the moment at which each was ready.

Six sources: a launch and its device work (correlation), the nodes of a backward pass (the graph that was walked when
it began, joined with events by name and sequence number), collectives (`exchanges.py`), tensors between devices and
processes (`tensors.py`), operations of compiled programs (`compiled.py`, `programs.py`), and batches of data loaders.
Latency is begin minus the end of the last input. Rows are those of the profile's table `events`; times on its clock.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.profiles.lineage import moved_ns, record_of_rows
from leadline.profiles.profile import Profile
from leadline.schema import EventKind
from leadline.trace.compiled import compiled_edges
from leadline.trace.exchanges import LAUNCH, Exchange, Pass, exchanges
from leadline.trace.programs import program_edges
from leadline.trace.tensors import tensors

Numbers = NDArray[np.int64]
_CALLS = (EventKind.API, EventKind.GRAPH_LAUNCH)
_PROGRAMS = {"jax": "hlo", "tensorflow": "node"}
"""Frameworks that tell the operands of what their programs execute, and the detail of a frame that names it. Imported
profiles say themselves which it is."""
_WORK = (EventKind.KERNEL, EventKind.COPY, EventKind.SET, EventKind.COLLECTIVE)
_EVALUATE = "autograd::engine::evaluate_function: "
_ACCUMULATE = "torch::autograd::AccumulateGrad"


class EdgeKind(IntEnum):
    """Why one event waits for another."""

    LAUNCH = 0
    BACKWARD = 1
    BUCKET = 2
    """From the addition of a gradient to the collective that its bucket is sent by."""
    WIRE = 3
    """From the launch of a collective to its work."""
    USE = 4
    """From the work of a collective to what first uses it."""
    COMPILED = 5
    """From the kernel of compiled code that writes a buffer to one that needs it."""
    TENSOR = 6
    """From where TensorFlow sends a tensor to where another device or process has received it."""


@dataclass(frozen=True)
class Edges:
    """`source` and `target` are rows of `events`; `unmatched` counts nodes of backward passes without an event, and
    tensors that were sent or received without their other end."""

    source: Numbers
    target: Numbers
    kind: NDArray[np.uint8]
    unmatched: int

    def columns(self) -> dict[str, NDArray[Any]]:
        """As NumPy columns, `kind` as text."""
        words = np.array([kind.name.lower() for kind in EdgeKind], dtype=object)
        return {"source": self.source, "target": self.target, "kind": words[self.kind]}


@dataclass(frozen=True)
class Batch:
    """The way of one batch; times in ns, -1 where one is not known. `worker`: its pid.

    queued: the training process asked for it; fetch: the worker made it; received: it came out of the worker's queue;
    wanted: the loop asked for it; used: the loop had it.
    """

    process: int
    loader: int
    index: int
    worker: int
    queued_ns: int
    fetch_begin_ns: int
    fetch_end_ns: int
    received_ns: int
    wanted_ns: int
    used_ns: int

    @property
    def waited_ns(self) -> int:
        """How long the loop waited for it."""
        return self.used_ns - self.wanted_ns

    @property
    def held_ns(self) -> int:
        """How long it lay in the training process while earlier batches were still on their way."""
        return max(self.wanted_ns - self.received_ns, 0) if self.received_ns > 0 else 0


def edges(profile: Profile) -> Edges:
    """All edges of the window."""
    found = [_launches(profile)]
    unmatched = 0
    for process, record in enumerate(record_of_rows(profile)):
        graphs = _listed(record, "graphs")
        if graphs:
            pairs, missing = _backward(profile, process, graphs, moved_ns(record))
            found.append(pairs)
            unmatched += missing
    found.append(_collectives(collectives(profile)))
    found.append(_compiled(profile))
    handed, alone = tensors(profile)
    unmatched += alone
    ends = np.array([(one.source, one.target) for one in handed], dtype=np.int64).reshape(-1, 2).T
    found.append((*ends, np.full(len(handed), int(EdgeKind.TENSOR))))
    source, target, kind = (np.concatenate(one) for one in zip(*found, strict=True))
    return Edges(source, target, kind.astype(np.uint8), unmatched)


def ready_ns(profile: Profile, found: Edges) -> Numbers:
    """For every event the end of its last input; -1 where it has none."""
    events = profile.events
    ready = np.full(len(events["start_ns"]), -1, dtype=np.int64)
    end = events["start_ns"] + np.maximum(events["duration_ns"], 0)
    # work of a device may begin before its launch has returned: it depends on the launch's begin
    launched = np.isin(found.kind, (EdgeKind.LAUNCH, EdgeKind.WIRE))
    moment = np.where(launched, events["start_ns"][found.source], end[found.source])
    np.maximum.at(ready, found.target, moment)
    return ready


def batches(profile: Profile) -> list[Batch]:
    """Every batch that a loop used in the window, in order; a worker's fetch is known where its events are."""
    found = []
    for process, record in enumerate(record_of_rows(profile)):
        rows = [row for row in _listed(record, "batches") if isinstance(row, list) and len(row) == 7]
        shift = moved_ns(record)
        fetches = _fetches(profile)
        for row in sorted(rows, key=lambda one: one[4]):
            loader, index, worker, *times = (int(value) for value in row)
            queued, received, wanted, used = (time + shift if time > 0 else -1 for time in times)
            mine = fetches.get(worker, [])
            # a worker makes batches in the order in which they were asked for
            while mine and mine[0][0] < queued:
                mine.pop(0)
            begin, end = mine.pop(0) if mine and mine[0][1] <= (received if received > 0 else used) else (-1, -1)
            found.append(Batch(process, loader, index, worker, queued, begin, end, received, wanted, used))
    return found


def collectives(profile: Profile) -> list[Exchange]:
    """The way of every collective that was launched in the window."""
    events = profile.events
    names = _names(profile, np.arange(len(events["start_ns"])))
    if not any(str(name).startswith(LAUNCH) for name in set(names.tolist())):
        return []
    passes: dict[int, list[Pass]] = {}
    for process, record in enumerate(record_of_rows(profile)):
        if graphs := _listed(record, "graphs"):
            passes[process] = _passes(profile, process, graphs, moved_ns(record), names)
    return exchanges(profile, names, passes)


def _passes(profile: Profile, process: int, graphs: list[Any], shift: int, names: NDArray[Any]) -> list[Pass]:
    """The backward passes of a process with the additions of gradients by bucket."""
    events = profile.events
    threads = [row for row, thread in enumerate(profile.threads) if thread.process == process]
    mine = np.isin(events["thread"], threads) & (events["kind"] == EventKind.OPERATOR)
    rows = np.flatnonzero(mine)
    engine = np.array([str(name).startswith(_EVALUATE) for name in names[rows].tolist()], dtype=np.bool_)
    nodes = list(_engine_nodes(profile, rows[engine], names[rows[engine]], rows[~engine], names[rows[~engine]]))
    times = np.array([begin for begin, *_ in nodes], dtype=np.int64)
    added = rows[names[rows] == _ACCUMULATE]
    begins = [int(graph["begin_ns"]) + shift for graph in graphs] + [1 << 62]
    found = []
    for number, graph in enumerate(graphs):
        buckets: dict[tuple[int, int], list[int]] = {}
        bucket_of = {  # earlier files name no reducer: they had one
            int(node[0]): (int(node[4]) if len(node) > 4 else 0, int(node[3]))
            for node in graph["nodes"]
            if len(node) > 3 and int(node[3]) >= 0
        }
        if bucket_of:
            low, high = np.searchsorted(times, begins[number : number + 2])
            row_of, _ = _matched(graph, nodes[low:high])
            for node, bucket in bucket_of.items():
                if node in row_of and (inner := _inside(events, added, row_of[node])) >= 0:
                    buckets.setdefault(bucket, []).append(inner)
        found.append(Pass(begins[number], buckets))
    return found


def _inside(events: Any, rows: Numbers, around: int) -> int:
    """The first of `rows` that begins within an event on its thread; -1 for none."""
    begin = int(events["start_ns"][around])
    end = begin + max(int(events["duration_ns"][around]), 0)
    at = np.searchsorted(events["start_ns"][rows], begin)
    for row in rows[at:].tolist():
        if events["start_ns"][row] >= end:
            return -1
        if events["thread"][row] == events["thread"][around]:
            return int(row)
    return -1


def _compiled(profile: Profile) -> tuple[Numbers, Numbers, Numbers]:
    events = profile.events
    owner = np.array([thread.process for thread in profile.threads] + [-1], dtype=np.int64)[events["thread"]]
    devices = np.array([device.process for device in profile.devices] + [-1], dtype=np.int64)[events["device"]]
    owner = np.where(events["thread"] >= 0, owner, devices)
    rows: list[tuple[int, int]] = []
    launched: list[tuple[int, int]] = []
    for process, record in enumerate(record_of_rows(profile)):
        available = record.get("available") or {}
        told = available.get("torch.compile")
        graphs = told.get("graphs") if isinstance(told, Mapping) else None
        if isinstance(graphs, list) and graphs:
            mine = np.flatnonzero((owner == process) & (events["thread"] >= 0))
            rows += compiled_edges(events, mine, _names(profile, mine), graphs)
        for naming, told in _told_programs(record, available):
            mine = np.flatnonzero(owner == process)
            inner, outer = program_edges(events, mine, _operations(profile, mine, naming), told)
            rows += inner
            launched += outer
    source, target = np.array(rows + launched, dtype=np.int64).reshape(-1, 2).T
    kinds = [int(EdgeKind.COMPILED)] * len(rows) + [int(EdgeKind.LAUNCH)] * len(launched)
    return source, target, np.array(kinds, dtype=np.int64)


def _told_programs(record: Mapping[str, Any], available: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What a process tells of the programs that it ran, each with the detail that names an operation."""
    for framework, naming in _PROGRAMS.items():
        told = available.get(framework)
        if isinstance(told, Mapping) and isinstance(told.get("dataflow"), Mapping):
            yield naming, told["dataflow"]
    imported = record.get("dataflow")
    told = imported.get("programs") if isinstance(imported, Mapping) else None
    if isinstance(told, Mapping):
        yield str(told.get("naming", "")), told


def _collectives(found: list[Exchange]) -> tuple[Numbers, Numbers, Numbers]:
    rows: list[tuple[int, int, int]] = []
    for one in found:
        rows += [(row, one.launch, int(EdgeKind.BUCKET)) for row in one.inputs]
        rows += [(one.launch, one.wire, int(EdgeKind.WIRE))] if one.wire >= 0 else []
        rows += [(one.wire, one.use, int(EdgeKind.USE))] if one.use >= 0 else []
    source, target, kind = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return source, target, kind


def _listed(record: Mapping[str, Any], name: str) -> list[Any]:
    told = record.get("dataflow")
    found = told.get(name) if isinstance(told, Mapping) else None
    return found if isinstance(found, list) else []


def _launches(profile: Profile) -> tuple[Numbers, Numbers, Numbers]:
    events = profile.events
    joined = events["correlation"]
    calls = np.flatnonzero(np.isin(events["kind"], _CALLS) & (joined != 0))
    work = np.flatnonzero(np.isin(events["kind"], _WORK) & (events["thread"] < 0) & (joined != 0))
    order = calls[np.argsort(joined[calls], kind="stable")]
    place = np.searchsorted(joined[order], joined[work])
    known = place < order.size
    known[known] = joined[order[place[known]]] == joined[work[known]]
    return order[place[known]], work[known], np.full(int(known.sum()), int(EdgeKind.LAUNCH))


def _fetches(profile: Profile) -> dict[int, list[tuple[int, int]]]:
    """(begin, end) of every batch that each worker (pid) made, in order."""
    events = profile.events
    phases = np.flatnonzero((events["kind"] == EventKind.PHASE) & (events["duration_ns"] >= 0))
    names = _names(profile, phases)
    found: dict[int, list[tuple[int, int]]] = {}
    for row in phases[names == "data loading"].tolist():
        thread = profile.threads[int(events["thread"][row])]
        begin = int(events["start_ns"][row])
        pid = profile.processes[thread.process].pid
        found.setdefault(pid, []).append((begin, begin + int(events["duration_ns"][row])))
    return found


def _names(profile: Profile, rows: Numbers) -> NDArray[Any]:
    frames = profile.tree.frame_of[profile.events["node"][rows]]
    distinct, of = np.unique(frames, return_inverse=True)
    texts = np.array([profile.tree.text("name", int(frame)) for frame in distinct.tolist()], dtype=object)
    named: NDArray[Any] = texts[of.ravel()] if distinct.size else np.empty(0, dtype=object)
    return named


def _operations(profile: Profile, rows: Numbers, naming: str) -> list[str]:
    """The framework's names of what events execute, from that key of their details; empty for other events."""
    node = profile.events["node"][rows].astype(np.int64)
    # work of a device stands below the operation that it does
    node = np.where(np.isin(profile.events["kind"][rows], _WORK), profile.tree.parent[node], node)
    frames = profile.tree.frame_of[node]
    distinct, of = np.unique(frames, return_inverse=True)
    texts = [_named(profile.tree.text("detail", int(frame)), naming) for frame in distinct.tolist()]
    return [texts[row] for row in of.ravel().tolist()]


def _named(detail: str, naming: str) -> str:
    try:
        found = json.loads(detail) if detail else None
    except ValueError:
        return ""
    return str(found.get(naming, "")) if isinstance(found, dict) else ""


def _backward(
    profile: Profile, process: int, graphs: list[Any], shift: int
) -> tuple[tuple[Numbers, Numbers, Numbers], int]:
    """Edges of one process's backward passes, and how many of their nodes no event was found for."""
    events = profile.events
    threads = [row for row, thread in enumerate(profile.threads) if thread.process == process]
    rows = np.flatnonzero(np.isin(events["thread"], threads) & (events["kind"] == EventKind.OPERATOR))
    names = _names(profile, rows)
    engine = np.array([name.startswith(_EVALUATE) for name in names.tolist()], dtype=np.bool_)
    nodes = list(_engine_nodes(profile, rows[engine], names[engine], rows[~engine], names[~engine]))
    times = np.array([begin for begin, *_ in nodes], dtype=np.int64)
    source: list[int] = []
    target: list[int] = []
    missing = 0
    begins = [int(graph["begin_ns"]) + shift for graph in graphs] + [1 << 62]
    for number, graph in enumerate(graphs):
        low, high = np.searchsorted(times, begins[number : number + 2])
        row_of, absent = _matched(graph, nodes[low:high])
        missing += absent
        flat = graph["edges"]
        for one, following in zip(flat[::2], flat[1::2], strict=True):
            if one in row_of and following in row_of:
                source.append(row_of[one])
                target.append(row_of[following])
    kinds = np.full(len(source), int(EdgeKind.BACKWARD))
    return (np.array(source, dtype=np.int64), np.array(target, dtype=np.int64), kinds), missing


def _engine_nodes(
    profile: Profile, engine: Numbers, names: NDArray[Any], inner: Numbers, inner_names: NDArray[Any]
) -> Iterator[tuple[int, int, str, int]]:
    """(begin, row, name, sequence) of every node that the engine ran, in order: the sequence number is that of the
    operator of the node's name inside."""
    events = profile.events
    order = inner[np.argsort(events["start_ns"][inner], kind="stable")]
    by_place = dict(zip(inner.tolist(), inner_names.tolist(), strict=True))
    starts = events["start_ns"][order]
    for row, name in zip(engine.tolist(), names.tolist(), strict=True):
        begin = int(events["start_ns"][row])
        end = begin + max(int(events["duration_ns"][row]), 0)
        own = name.removeprefix(_EVALUATE)
        sequence = -1
        for place in range(*np.searchsorted(starts, [begin, end]).tolist()):
            inside = int(order[place])
            if by_place[inside] == own and events["thread"][inside] == events["thread"][row]:
                sequence = int(events["sequence"][inside])
                break
        yield begin, row, own, sequence


def _matched(graph: Mapping[str, Any], ran: list[tuple[int, int, str, int]]) -> tuple[dict[int, int], int]:
    """Event of every node of a graph, and how many have none. Accumulations have no sequence number: the engine runs
    them right behind the node that feeds them, in the order of its inputs."""
    rows: dict[tuple[str, int], list[int]] = {}
    following: dict[int, list[int]] = {}
    last = -1
    for _, row, name, sequence in ran:
        if name.endswith("AccumulateGrad"):
            following.setdefault(last, []).append(row)
        else:
            rows.setdefault((name, sequence), []).append(row)
            last = row
    named = {int(node[0]): (str(node[1]), int(node[2])) for node in graph["nodes"]}
    found: dict[int, int] = {}
    for number, (name, sequence) in named.items():
        if (listed := rows.get((name, sequence))) and not name.endswith("AccumulateGrad"):
            found[number] = listed.pop(0)
    flat = graph["edges"]
    for one, target in zip(flat[::2], flat[1::2], strict=True):
        fed = named.get(target, ("", 0))[0].endswith("AccumulateGrad")
        if fed and one in found and target not in found and following.get(found[one]):
            found[target] = following[found[one]].pop(0)
    return found, len(named) - len(found)
