"""All ranks of a job as one graph: one clock, and collectives in which every rank waits for the last.

A collective kernel runs from its own rank's arrival to the common end, so most of its time can be waiting. Together
the ranks tell: it starts when the last has arrived, and transfers for as long as the fastest member took.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from leadline._dataclass import replace
from leadline.whatif.build.build import with_measured
from leadline.whatif.columns import ColumnTable
from leadline.whatif.graph import EDGE_COLUMNS, TASK_COLUMNS, WAIT_COLUMNS, Graph, GraphInfo
from leadline.whatif.kinds import IntArray, Lane, TaskKind

_NUMBER = re.compile(r"\d[\d.,]*")
SAME_END_NS = 200_000  # members of one collective end within microseconds; beyond this they are different ones


def merge(graphs: Iterable[Graph]) -> Graph:
    """One graph of several ranks' graphs, which must count from the same moment. Collectives are joined."""
    names: dict[str, int] = {"": 0}
    layers: dict[str, int] = {"": 0}
    lanes: list[Lane] = []
    details: list[Mapping[str, Any]] = []
    tasks: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    waits: list[dict[str, Any]] = []
    infos: list[GraphInfo] = []
    first_task = 0
    for graph in graphs:
        first_lane, first_detail = len(lanes), len(details)
        name_of = np.array([names.setdefault(text, len(names)) for text in graph.names], dtype=np.int32)
        layer_of = np.array([layers.setdefault(text, len(layers)) for text in graph.layers], dtype=np.int32)
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
        infos.append(graph.info)
        first_task += len(graph)
    merged = Graph(
        _stack(tasks, TASK_COLUMNS),
        _stack(edges, EDGE_COLUMNS),
        _stack(waits, WAIT_COLUMNS),
        lanes,
        list(names),
        list(layers),
        details,
        replace(
            infos[0],
            source=", ".join(info.source for info in infos),
            ranks=tuple(rank for info in infos for rank in info.ranks),
            world_size=max(len(infos), max(info.world_size for info in infos)),
            unexplained_ns=sum(info.unexplained_ns for info in infos),
            warnings=_common_warnings(infos),
        ),
    )
    return with_measured(rendezvous(merged))


def _stack(parts: Sequence[dict[str, Any]], columns: Mapping[str, str]) -> ColumnTable:
    """The parts behind one another; each gives its columns away, so that no more than one is there twice."""
    return ColumnTable(
        {
            name: np.concatenate([part.pop(name) for part in parts], dtype=dtype, casting="same_kind")
            for name, dtype in columns.items()
        }
    )


def _common_warnings(infos: Sequence[GraphInfo]) -> tuple[str, ...]:
    """The ranks' warnings; what several ranks say in the same words up to numbers is said once."""
    said: dict[str, list[tuple[int, str]]] = {}
    for info in infos:
        for text in info.warnings:
            said.setdefault(_NUMBER.sub("#", text), []).append((info.ranks[0], text))
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
            "which cannot be separated from transfer; load all ranks of the job together to separate them"
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
    lane = graph.column("lane")
    members: dict[Any, dict[int, list[int]]] = {}
    lanes: dict[int, dict[int, int]] = {}
    for task, rank in zip(comm[order].tolist(), ranks[order].tolist(), strict=True):
        key = communicator(graph.detail(task), int(lane[task]), lanes.setdefault(rank, {}))
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


def communicator(detail: Mapping[str, Any], lane: int, lanes: dict[int, int]) -> Any:
    """What identifies a collective's group on every rank: the process group, else the stream in order of first use,
    which `lanes` keeps for each rank."""
    if detail.get("Process Group Name") is not None:
        return str(detail["Process Group Name"]), str(detail.get("Process Group Ranks") or "")
    return lanes.setdefault(lane, len(lanes))
