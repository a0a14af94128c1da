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

from leadline.whatif.build.build import with_measured
from leadline.whatif.columns import ColumnTable
from leadline.whatif.graph import EDGE_COLUMNS, TASK_COLUMNS, WAIT_COLUMNS, Graph
from leadline.whatif.kinds import IntArray, Lane, TaskKind

_NUMBER = re.compile(r"\d[\d.,]*")
SAME_END_NS = 200_000  # members of one collective end within microseconds; beyond this they are different ones
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
    """Members of every collective, and collective kernels without a partner."""
    ranks = graph.rank_of_tasks()[comm]
    order = np.argsort(graph.column("start_ns")[comm], kind="stable")
    seen: dict[tuple[int, Any], int] = {}
    slots: dict[tuple[Any, int], list[int]] = {}
    lanes: dict[int, dict[int, int]] = {}
    for task, rank in zip(comm[order].tolist(), ranks[order].tolist(), strict=True):
        key = _communicator(graph, task, lanes.setdefault(rank, {}))
        place = seen.get((rank, key), 0)
        seen[(rank, key)] = place + 1
        slots.setdefault((key, place), []).append(task)
    ends = graph.column("start_ns") + graph.column("measured_ns")
    groups: list[IntArray] = []
    single: list[int] = []
    for slot in slots.values():
        members = np.array(slot, dtype=np.int64)[np.argsort(ends[slot], kind="stable")]
        for part in np.split(members, np.flatnonzero(np.diff(ends[members]) > SAME_END_NS) + 1):
            if part.size > 1:
                groups.append(part)
            else:
                single.extend(part.tolist())
    return groups, single


def _communicator(graph: Graph, task: int, lanes: dict[int, int]) -> Any:
    """What identifies a collective's group on every rank: the process group, else the stream in order of first use."""
    detail = graph.detail(task)
    members = detail.get("Process Group Ranks")
    if members and detail.get("Process Group Name") is not None:
        return str(detail["Process Group Name"]), str(members)
    lane = int(graph.column("lane")[task])
    return lanes.setdefault(lane, len(lanes))


def clock_offsets(starts_ns: Sequence[int], graphs: Sequence[Graph]) -> list[int]:
    """What to subtract from each rank's clock so that collectives end together; 0 where clocks agree well.

    starts_ns: absolute time 0 of each graph. Uses the k-th collective of each rank, so it needs as many on all.
    """
    ends = []
    for start, graph in zip(starts_ns, graphs, strict=True):
        comm = np.flatnonzero(graph.column("kind") == TaskKind.COMM)
        found = np.sort(graph.column("start_ns")[comm] + graph.column("measured_ns")[comm]) + start
        ends.append(found)
    if len({found.size for found in ends}) != 1 or not ends[0].size:
        return [0] * len(graphs)
    table = np.stack(ends)
    offsets = np.median(table - np.median(table, axis=0), axis=1).astype(np.int64)
    aligned = table - offsets[:, None]
    if np.median(np.ptp(aligned, axis=0)) > SAME_END_NS:
        return [0] * len(graphs)  # not the same collectives, so they say nothing about clocks
    return [int(value) if abs(int(value)) > CLOCK_NS else 0 for value in offsets]
