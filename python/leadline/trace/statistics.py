"""Statistics of a window, as in Zins and Dagenais: duration and latency by call path, operator, kernel or stage.

Latency is begin minus the end of the last input, where inputs are known (see `dataflow.py`). Deviations are of a
sample: divided by n - 1, and 0 for one occurrence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.profiles.lineage import record_of_rows
from leadline.profiles.profile import Profile
from leadline.schema import EventKind, FrameKind
from leadline.trace.dataflow import Batch, batches, collectives, edges, ready_ns
from leadline.trace.exchanges import LAUNCH, Exchange
from leadline.trace.tensors import tensors
from leadline.trace.timeline import BETWEEN, WHOLE, timelines

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Spread:
    """Of some times in ns; all 0 where there are none."""

    count: int
    mean: float
    deviation: float
    low: int
    high: int
    total: int

    @classmethod
    def of(cls, values: Numbers) -> Spread:
        if not values.size:
            return cls(0, 0.0, 0.0, 0, 0, 0)
        deviation = float(values.std(ddof=1)) if values.size > 1 else 0.0
        return cls(
            values.size, float(values.mean()), deviation, int(values.min()), int(values.max()), int(values.sum())
        )


@dataclass(frozen=True)
class Statistic:
    """A row: what, its durations, and its latencies as far as inputs are known."""

    name: str
    duration: Spread
    latency: Spread


def statistics(profile: Profile, by: str) -> list[Statistic]:
    """Rows by `operator`, `kernel`, `node` or `stage`, the longest total first."""
    return sorted(_BY[by](profile), key=lambda row: (-row.duration.total, row.name))


def _of_kinds(profile: Profile, kinds: tuple[EventKind, ...], label: Callable[[int], str]) -> Iterator[Statistic]:
    """Rows of the events of these kinds that have ended, by the label of their node."""
    events = profile.events
    rows = np.flatnonzero(np.isin(events["kind"], [int(kind) for kind in kinds]) & (events["duration_ns"] >= 0))
    ready = ready_ns(profile, edges(profile))
    labels: dict[str, int] = {}
    nodes, of = np.unique(events["node"][rows], return_inverse=True)
    number = np.array([labels.setdefault(label(int(node)), len(labels)) for node in nodes.tolist()], dtype=np.int64)
    group = number[of.ravel()] if rows.size else number
    latency = np.where(ready[rows] >= 0, events["start_ns"][rows] - ready[rows], -(1 << 62))
    for name, one in labels.items():
        mine = group == one
        late = latency[mine]
        yield Statistic(
            name,
            Spread.of(events["duration_ns"][rows[mine]].astype(np.int64)),
            Spread.of(late[late > -(1 << 62)].astype(np.int64)),
        )


def _operators(profile: Profile) -> Iterator[Statistic]:
    yield from _of_kinds(profile, (EventKind.OPERATOR,), _name(profile))


def _kernels(profile: Profile) -> Iterator[Statistic]:
    kinds = (EventKind.KERNEL, EventKind.COPY, EventKind.SET, EventKind.COLLECTIVE)
    yield from _of_kinds(profile, kinds, _name(profile))


def _nodes(profile: Profile) -> Iterator[Statistic]:
    tree = profile.tree
    parent = np.asarray(tree.parent)
    name = _name(profile)

    def label(node: int) -> str:
        """The name, below the names of the operators and modules above it, at the innermost line of the program."""
        words, line, at = [name(node)], "", int(parent[node])
        while at >= 0:
            frame = int(tree.frame_of[at])
            kind = int(tree.frames["kind"][frame])
            if kind == FrameKind.PYTHON:
                line = f"{tree.text('file', frame)}:{int(tree.frames['line'][frame])}"
                break
            if kind in (FrameKind.OPERATOR, FrameKind.MODULE, FrameKind.PHASE, FrameKind.REGION):
                words.append(tree.text("name", frame))
            at = int(parent[at])
        return " > ".join([*([line] if line else []), *reversed(words)])

    yield from _of_kinds(profile, (EventKind.OPERATOR,), label)


def _name(profile: Profile) -> Callable[[int], str]:
    tree = profile.tree
    return lambda node: tree.text("name", int(tree.frame_of[node]))


def _stages(profile: Profile) -> Iterator[Statistic]:
    """The phases of all threads, each once a step, and the way of the batches of data loaders."""
    phases: dict[str, list[int]] = {}
    for line in timelines(profile, kernel=False):
        for row in line.rows:
            if row.phase not in (WHOLE, BETWEEN):
                phases.setdefault(row.phase, []).append(row.wall_ns)
    for phase, durations in phases.items():
        yield Statistic(phase, Spread.of(np.array(durations, dtype=np.int64)), Spread.of(np.empty(0, dtype=np.int64)))
    ways = loader_stages(batches(profile)) | exchange_stages(collectives(profile)) | tensor_stages(profile)
    ways |= queue_stages(profile)
    for name, values in ways.items():
        yield Statistic(name, Spread.of(values), Spread.of(np.empty(0, dtype=np.int64)))


def exchange_stages(found: list[Exchange]) -> dict[str, Numbers]:
    """Durations of the stages of collectives; of buckets of gradients also how long they were ready."""
    stages: dict[str, list[int]] = {}
    for one in found:
        name = "bucket of gradients" if one.bucket >= 0 else one.name.removeprefix(LAUNCH).strip("_")
        for stage, begin, end in (
            ("ready until launched", one.ready_ns, one.launched_ns),
            ("launched until on the wire", one.launched_ns, one.begun_ns),
            ("on the wire", one.begun_ns, one.done_ns),
            ("done until used", one.done_ns, one.used_ns),
        ):
            if begin >= 0 and end >= 0:
                stages.setdefault(f"{name}: {stage}", []).append(end - begin)
    return {name: np.array(values, dtype=np.int64) for name, values in stages.items()}


def tensor_stages(profile: Profile) -> dict[str, Numbers]:
    """Durations of the stages of tensors between devices or processes of TensorFlow, by tensor and who sent it."""
    stages: dict[str, list[int]] = {}
    hosts = [_host_of(record) for record in record_of_rows(profile)]
    if len(set(hosts)) < len(hosts):  # several processes of one machine: by their files
        hosts = [_file_of(record) for record in record_of_rows(profile)]
    for one in tensors(profile)[0]:
        between = f" from {hosts[one.sender]}" if one.sender != one.receiver else ""
        stages.setdefault(f"tensor {one.name}{between}: waited for the sender", []).append(one.waited_for_sender_ns)
        stages.setdefault(f"tensor {one.name}{between}: on the way", []).append(one.on_the_way_ns)
    return {name: np.array(values, dtype=np.int64) for name, values in stages.items()}


def queue_stages(profile: Profile) -> dict[str, Numbers]:
    """How long nodes of TensorFlow 1 were in the executor's queue, by operation."""
    stages: dict[str, list[int]] = {}
    for record in record_of_rows(profile):
        told = record.get("dataflow")
        queued = told.get("queued") if isinstance(told, Mapping) else None
        for name, values in queued.items() if isinstance(queued, Mapping) else ():
            waited = [value for value in values if isinstance(value, int)] if isinstance(values, list) else []
            stages.setdefault(f"{name}: in the executor's queue", []).extend(waited)
    return {name: np.array(values, dtype=np.int64) for name, values in stages.items()}


def _host_of(record: Mapping[str, object]) -> str:
    host = record.get("host")
    return str(host.get("hostname") or "another process") if isinstance(host, Mapping) else "another process"


def _file_of(record: Mapping[str, object]) -> str:
    program = record.get("program")
    argv = program.get("argv") if isinstance(program, Mapping) else None
    return str(argv[0]) if isinstance(argv, list) and argv else "another process"


def loader_stages(found: list[Batch]) -> dict[str, Numbers]:
    """Durations of the stages of batches: empty without workers."""
    stages: dict[str, list[int]] = {}
    for one in found:
        if one.fetch_end_ns > 0:
            stages.setdefault("batch: in a worker's queue", []).append(one.fetch_begin_ns - one.queued_ns)
            stages.setdefault("batch: made by a worker", []).append(one.fetch_end_ns - one.fetch_begin_ns)
            if one.received_ns > 0:
                # it stays in the queue until the loop waits for a batch, which is not the way's fault
                sent = max(one.fetch_end_ns, min(one.wanted_ns, one.received_ns))
                stages.setdefault("batch: sent to the loop's process", []).append(one.received_ns - sent)
        stages.setdefault("batch: held for its turn", []).append(held_for_order_ns(one, found))
        stages.setdefault("batch: waited for by the loop", []).append(one.waited_ns)
    return {name: np.array(values, dtype=np.int64) for name, values in stages.items()}


def held_for_order_ns(one: Batch, found: list[Batch]) -> int:
    """How long a batch lay ready while the loop waited for earlier ones."""
    if one.received_ns <= 0:
        return 0
    return sum(
        max(min(other.used_ns, one.wanted_ns) - max(other.wanted_ns, one.received_ns), 0)
        for other in found
        if other.process == one.process and other.loader == one.loader and other.wanted_ns < one.wanted_ns
    )


_BY: Mapping[str, Callable[[Profile], Iterator[Statistic]]] = {
    "operator": _operators,
    "kernel": _kernels,
    "node": _nodes,
    "stage": _stages,
}
KEYS = tuple(_BY)
