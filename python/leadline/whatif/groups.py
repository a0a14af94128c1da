"""The process group of each collective and what it is for: a job with tensor, pipeline or expert parallelism has
several, and only those that exchange gradients grow when workers are added."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from leadline._dataclass import dataclass
from leadline.whatif.collectives import Collective
from leadline.whatif.edits import operation_of
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import Phase

_ROLES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("tensor", re.compile(r"(^|[^a-z])(tp|tensor)", re.IGNORECASE)),
    ("pipeline", re.compile(r"(^|[^a-z])(pp|pipe)", re.IGNORECASE)),
    ("expert", re.compile(r"(^|[^a-z])(ep|expert|moe)([^a-z]|$)", re.IGNORECASE)),
    ("context", re.compile(r"(^|[^a-z])(cp|context|sequence)", re.IGNORECASE)),
    ("data", re.compile(r"(^|[^a-z])(dp|ddp|fsdp|data|default_pg|replicate|shard)", re.IGNORECASE)),
)


@dataclass(frozen=True)
class Group:
    """`size`: workers in it; `role`: data, tensor, pipeline, expert, context, or "" where nothing tells."""

    name: str
    size: int
    role: str


def group_of(graph: Graph, task: int) -> Group:
    """The process group of a collective, from its own record, else that of the whole job."""
    detail = _recorded(graph, task)
    name = str(detail.get("Process Group Name", ""))
    listed = _configured(graph).get(name, {})
    size = detail.get("Group size", listed.get("pg_size"))
    if not isinstance(size, int) or size < 1 or contradicts(detail, graph.info.world_size):
        size = len(_ranks(detail.get("Process Group Ranks"))) or max(graph.info.world_size, 1)
    said = f"{detail.get('Process Group Description', '')} {listed.get('pg_desc', '')}"
    role = next((role for role, pattern in _ROLES if pattern.search(said)), "")
    return Group(name, size, role)


def contradicts(detail: Mapping[str, Any], world_size: int) -> bool:
    """Whether the size that a collective says of its group cannot be: below one, above the whole job's, or another than
    the number of members that it names."""
    size = detail.get("Group size")
    if not isinstance(size, int):
        return size is not None
    members = len(_ranks(detail.get("Process Group Ranks")))
    return size < 1 or (world_size > 1 and size > world_size) or (members > 0 and members != size)


def grows_with_workers(graph: Graph, task: int, group: Group) -> bool:
    """Whether a collective exchanges gradients or sharded parameters, so that more workers join it. Where the group
    does not say what it is for, sums and gathers over all workers do, or those of the backward pass and the update."""
    operation = operation_of(graph, task)
    if operation in (Collective.POINT_TO_POINT, Collective.ALL_TO_ALL):
        return False
    if group.role:
        return group.role == "data"
    late = int(graph.column("phase")[task]) in (Phase.BACKWARD, Phase.OPTIMIZER)
    return group.size >= graph.info.world_size or late


def _recorded(graph: Graph, task: int) -> Mapping[str, Any]:
    """What torch.distributed recorded with a collective, on its kernel or on the operator around its launch."""
    parent, at = graph.column("parent"), task
    while at >= 0:
        detail = graph.detail(at)
        if "Process Group Name" in detail or "Group size" in detail:
            return detail
        at = int(parent[at])
    return {}


def _configured(graph: Graph) -> dict[str, Mapping[str, Any]]:
    distributed = graph.info.facts.get("distributed")
    listed = distributed.get("pg_config") if isinstance(distributed, Mapping) else None
    known = [item for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []
    return {str(item.get("pg_name", "")): item for item in known}


def _ranks(text: Any) -> list[Any]:
    """The members of a group; abbreviated lists name them in part, and then say nothing."""
    try:
        found = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return []
    return found if isinstance(found, list) else []
