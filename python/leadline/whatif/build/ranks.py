"""All ranks of a job as one graph: one clock, and collectives in which every rank waits for the last.

A collective kernel runs from its own rank's arrival to the common end, so most of its time can be waiting. Together
the ranks tell: it starts when the last has arrived, and transfers for as long as the fastest member took.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.whatif.build.build import with_measured
from leadline.whatif.columns import ColumnTable
from leadline.whatif.graph import EDGE_COLUMNS, TASK_COLUMNS, WAIT_COLUMNS, Graph
from leadline.whatif.kinds import IntArray, Lane, TaskKind

_NUMBER = re.compile(r"\d[\d.,]*")
SAME_END_NS = 200_000  # members of one collective end within microseconds; beyond this they are different ones
_MOST_PAIRED = 500  # collectives of a rank whose distances to all of another are compared
CLOCK_NS = 50_000  # clocks that disagree less need no correction


def merge(graphs: Sequence[Graph]) -> Graph:
    """One graph of several ranks' graphs, which must count from the same moment. Collectives are joined."""
    names: dict[str, int] = {"": 0}
    layers: dict[str, int] = {"": 0}
    lanes: list[Lane] = []
    details: list[Mapping[str, Any]] = []
    tasks: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    waits: list[dict[str, Any]] = []
    for graph in graphs:
        first_task, first_lane, first_detail = sum(len(table["lane"]) for table in tasks), len(lanes), len(details)
        name_of = np.array([names.setdefault(text, len(names)) for text in graph.names], dtype=np.int64)
        layer_of = np.array([layers.setdefault(text, len(layers)) for text in graph.layers], dtype=np.int64)
        columns = {name: graph.tasks[name] for name in TASK_COLUMNS}
        columns["lane"] = columns["lane"] + first_lane
        columns["name"], columns["operator"] = name_of[columns["name"]], name_of[columns["operator"]]
        columns["layer"] = layer_of[columns["layer"]]
        columns["parent"] = np.where(columns["parent"] >= 0, columns["parent"] + first_task, -1)
        columns["detail"] = np.where(columns["detail"] >= 0, columns["detail"] + first_detail, -1)
        tasks.append(columns)
        links = {name: graph.edges[name] for name in EDGE_COLUMNS}
        edges.append({**links, "src": links["src"] + first_task, "dst": links["dst"] + first_task})
        awaited = {name: graph.waits[name] for name in WAIT_COLUMNS}
        waits.append({"task": awaited["task"] + first_task, "lane": awaited["lane"] + first_lane})
        lanes.extend(graph.lanes)
        details.extend(graph.details)
    merged = Graph(
        _stack(tasks, TASK_COLUMNS),
        _stack(edges, EDGE_COLUMNS),
        _stack(waits, WAIT_COLUMNS),
        lanes,
        list(names),
        list(layers),
        details,
        replace(
            graphs[0].info,
            source=", ".join(graph.info.source for graph in graphs),
            ranks=tuple(rank for graph in graphs for rank in graph.info.ranks),
            world_size=max(len(graphs), max(graph.info.world_size for graph in graphs)),
            unexplained_ns=sum(graph.info.unexplained_ns for graph in graphs),
            warnings=_common_warnings(graphs),
        ),
    )
    return with_measured(rendezvous(merged))


def _stack(parts: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> ColumnTable:
    return ColumnTable(
        {name: np.concatenate([part[name] for part in parts]).astype(dtype) for name, dtype in columns.items()}
    )


def _common_warnings(graphs: Sequence[Graph]) -> tuple[str, ...]:
    """The ranks' warnings; what several ranks say in the same words up to numbers is said once."""
    said: dict[str, list[tuple[int, str]]] = {}
    for graph in graphs:
        for text in graph.info.warnings:
            said.setdefault(_NUMBER.sub("#", text), []).append((graph.info.ranks[0], text))
    result = []
    for entries in said.values():
        rank, text = entries[0]
        more = f" and {len(entries) - 1} more ranks alike" if len(entries) > 1 else ""
        result.append(f"rank {rank}{more}: {text}")
    return tuple(result)


def rendezvous(graph: Graph) -> Graph:
    """Join the collectives of all ranks and reduce each to its transfer; warn about those that cannot be joined."""
    comm = np.flatnonzero((graph.column("kind") == TaskKind.COMM) & graph.alive)
    if not comm.size:
        return graph
    groups, single = _groups(graph, comm)
    group, duration = graph.tasks.write("group"), graph.tasks.write("duration_ns")
    warnings = list(graph.info.warnings)
    for number, members in enumerate(groups):
        group[members] = number
        duration[members] = duration[members].min()
    if single:
        spent = int(graph.column("measured_ns")[single].sum())
        warnings.append(
            f"{len(single)} collective kernels ({spent / 1e6:.2f} ms) include waiting for ranks that are not loaded, "
            "which cannot be told from transfer; load all ranks of the job together to separate them"
        )
    graph.info = replace(graph.info, warnings=tuple(warnings), facts={**graph.info.facts, "collectives": len(groups)})
    return graph


def _groups(graph: Graph, comm: IntArray) -> tuple[list[IntArray], list[int]]:
    """Members of every collective, and collective kernels without a partner.

    Members have the same group and the same number in it: the one that torch.distributed counts (`Seq`) where all have
    it, else their place among those of the group on their rank. Of the second a lost kernel would shift all that
    follow, so places are counted anew wherever the ends say that the ranks are out of step.
    """
    ranks = graph.rank_of_tasks()[comm]
    order = np.argsort(graph.column("start_ns")[comm], kind="stable")
    members: dict[Any, dict[int, list[int]]] = {}
    lanes: dict[int, dict[int, int]] = {}
    for task, rank in zip(comm[order].tolist(), ranks[order].tolist(), strict=True):
        key = _communicator(graph, task, lanes.setdefault(rank, {}))
        members.setdefault(key, {}).setdefault(rank, []).append(task)
    ends = graph.column("start_ns") + graph.column("measured_ns")
    groups: list[IntArray] = []
    single: list[int] = []
    for by_rank in members.values():
        for slot in _slots(graph, by_rank, ends):
            found = np.array(slot, dtype=np.int64)[np.argsort(ends[slot], kind="stable")]
            for part in np.split(found, np.flatnonzero(np.diff(ends[found]) > SAME_END_NS) + 1):
                if part.size > 1:
                    groups.append(part)
                else:
                    single.extend(part.tolist())
    return groups, single


def _slots(graph: Graph, by_rank: Mapping[int, Sequence[int]], ends: IntArray) -> list[list[int]]:
    """The collectives of one group: tasks of several ranks that belong together, in order."""
    numbered: dict[int, list[int]] = {}
    for tasks in by_rank.values():
        for task in tasks:
            number = graph.detail(task).get("Seq")
            if not isinstance(number, int):
                return _by_place(graph, by_rank, ends)
            numbered.setdefault(number, []).append(task)
    ranks = graph.rank_of_tasks()
    if any(len(set(ranks[tasks].tolist())) != len(tasks) for tasks in numbered.values()):
        return _by_place(graph, by_rank, ends)  # the numbers contradict themselves
    return [numbered[number] for number in sorted(numbered)]


def _by_place(graph: Graph, by_rank: Mapping[int, Sequence[int]], ends: IntArray) -> list[list[int]]:
    """Ranks walk through their collectives side by side; one whose next ends far behind the others' has lost one."""
    queues = {rank: list(tasks) for rank, tasks in by_rank.items()}
    at = dict.fromkeys(queues, 0)
    kind = graph.column("name")
    slots: list[list[int]] = []
    while True:
        heads = {rank: queue[at[rank]] for rank, queue in queues.items() if at[rank] < len(queue)}
        if not heads:
            return slots
        first = min(int(ends[task]) for task in heads.values())
        slot = {rank: task for rank, task in heads.items() if int(ends[task]) - first <= SAME_END_NS}
        late = {rank: task for rank, task in heads.items() if rank not in slot}
        # clocks that disagree put all of a rank's ends off alike: such a rank stays in step by what it does, not when
        for rank, task in late.items():
            ahead = queues[rank][at[rank] : at[rank] + 2]
            same = kind[task] in {int(kind[other]) for other in slot.values()}
            if same and len(queues[rank]) == max(len(queue) for queue in queues.values()) and len(ahead):
                slot[rank] = task
        for rank in slot:
            at[rank] += 1
        slots.append(list(slot.values()))


def _communicator(graph: Graph, task: int, lanes: dict[int, int]) -> Any:
    """What identifies a collective's group on every rank: the process group, else the stream in order of first use."""
    detail = graph.detail(task)
    members = detail.get("Process Group Ranks")
    if detail.get("Process Group Name") is not None:
        return str(detail["Process Group Name"]), str(members or "")
    lane = int(graph.column("lane")[task])
    return lanes.setdefault(lane, len(lanes))


def clock_offsets(starts_ns: Sequence[int], graphs: Sequence[Graph]) -> list[int]:
    """What to subtract from each rank's clock so that collectives end together; 0 where clocks agree well.

    starts_ns: absolute time 0 of each graph. The ranks of one process group are compared two by two, by the numbers
    that torch.distributed gives their collectives or else by place, so a rank that takes part in some groups only
    (a pipeline's stage) is placed through those that it shares with others.
    """
    ends = [_ends_by_collective(graph, start) for start, graph in zip(starts_ns, graphs, strict=True)]
    offsets: dict[int, float] = {0: 0.0}
    waiting = [0]
    while waiting:
        known = waiting.pop(0)
        for other in range(len(graphs)):
            if other in offsets:
                continue
            apart = _apart(ends[known], ends[other])
            if apart is not None:
                offsets[other] = offsets[known] + apart
                waiting.append(other)
    middle = float(np.median(list(offsets.values())))
    found = [round(offsets[rank] - middle) if rank in offsets else 0 for rank in range(len(graphs))]
    return [value if abs(value) > CLOCK_NS else 0 for value in found]


def _ends_by_collective(graph: Graph, start_ns: int) -> dict[Any, int]:
    """Absolute end of every collective of a rank, by group and number."""
    comm = np.flatnonzero(graph.column("kind") == TaskKind.COMM)
    comm = comm[np.argsort(graph.column("start_ns")[comm], kind="stable")]
    lanes: dict[int, int] = {}
    count: dict[Any, int] = {}
    found: dict[Any, int] = {}
    for task in comm.tolist():
        group = _communicator(graph, task, lanes)
        number = graph.detail(task).get("Seq")
        place = count[group] = count.get(group, -1) + 1
        key = (group, "Seq", number) if isinstance(number, int) else (group, "place", place)
        found[key] = int(graph.column("start_ns")[task] + graph.column("measured_ns")[task]) + start_ns
    return found


def _apart(one: Mapping[Any, int], other: Mapping[Any, int]) -> float | None:
    """How far the second clock runs ahead of the first; None where their collectives do not agree on it."""
    shared = [key for key in one if key in other]
    if not shared:
        return None
    groups = {key[0] for key in shared}
    if any(sum(key[0] == group for key in one) != sum(key[0] == group for key in other) for group in groups) and any(
        key[1] == "place" for key in shared
    ):
        return _most_agreed(
            np.array([end for key, end in one.items() if key[0] in groups], dtype=np.float64),
            np.array([end for key, end in other.items() if key[0] in groups], dtype=np.float64),
        )
    apart = np.array([other[key] - one[key] for key in shared], dtype=np.float64)
    middle = float(np.median(apart))
    return middle if float(np.median(np.abs(apart - middle))) <= SAME_END_NS else None


def _most_agreed(one: NDArray[np.float64], other: NDArray[np.float64]) -> float | None:
    """The distance on which most pairs of ends agree, where records were lost and places say nothing; the smallest of
    several."""
    apart = np.sort((other[None, :_MOST_PAIRED] - one[:_MOST_PAIRED, None]).reshape(-1))
    agree = np.searchsorted(apart, apart + SAME_END_NS, side="right") - np.arange(apart.size)
    best = np.flatnonzero(agree == agree.max())
    first = int(best[np.argmin(np.abs(apart[best]))])
    if int(agree[first]) < max(min(one.size, other.size) / 2, 1):
        return None
    return float(np.median(apart[first : first + int(agree[first])]))
