"""Columns of a graph's tables, and what a graph says about its origin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leadline._dataclass import dataclass, field
from leadline.trace.tables import Link

PYTHON = "(python)"
OPERATIONS = "operations"  # how the steps of a job's operations were found
PART_OF_STEP = "part_of_step"  # fact: the window has some phases of training only
HIDDEN = "(unrecorded graph work)"
UNSEEN_LAUNCH = "(launch that is not recorded)"
CROWDED = "(waiting for room on the device)"

TASK_COLUMNS: Mapping[str, str] = {
    "kind": "u1",  # TaskKind
    "lane": "i4",  # row of graph.lanes
    "duration_ns": "i8",  # own time, waiting for others excluded
    "gap_ns": "i8",  # lane time after the end before the next task may start; negative on streams: permitted overlap
    "gap_level": "u1",  # whose own work the gap is: that many spans up from the task, as far as there are
    "earliest_ns": "i8",  # not before, relative to the window's start; 0 where free
    "start_ns": "i8",  # measured start relative to the window's start; -1 for inserted tasks
    "measured_ns": "i8",  # measured duration, waiting included; 0 for inserted tasks
    "order": "f8",  # position on the lane; comparable over all lanes of a graph
    "name": "i4",  # row of graph.names
    "operator": "i4",  # row of graph.names: outermost operator around the task or its launch; 0 is empty
    "parent": "i4",  # enclosing CPU task, -1 for none; for device work the API call that launched it
    "layer": "i4",  # row of graph.layers; 0 is empty
    "phase": "u1",  # Phase
    "step": "i4",  # row of graph.info.steps; -1 for work from before the first step
    "bytes": "i8",  # copies, sets and collectives
    "priority": "f8",  # smaller first on READY lanes
    "group": "i4",  # collective: tasks of one group meet; -1 for none
    "detail": "i4",  # row of graph.details; -1 for none
    "beside": "?",  # device work that goes on beside the steps and ends none of them
    "alive": "?",  # false after remove()
}
EDGE_COLUMNS: Mapping[str, str] = {"src": "i4", "dst": "i4", "type": "u1", "latency_ns": "i8"}
WAIT_COLUMNS: Mapping[str, str] = {"task": "i4", "lane": "i4"}


@dataclass(frozen=True)
class DeviceInfo:
    """What the trace says about an accelerator; 0 and "" where it says nothing."""

    name: str = ""
    memory_bytes: int = 0
    compute_capability: str = ""
    multiprocessors: int = 0
    links: tuple[Link, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """What a second profile adds (evidence.py). `batch_ratio`: its batch over the first one's, 1 where they agree;
    `exponents`: by name, the power of the batch with which a task's own time grows; `batch_ns`: what a loader needs for
    one batch, None where the profiles do not tell; `words`: a sentence about it."""

    batch_ratio: float
    exponents: Mapping[str, float]
    batch_ns: float | None
    words: str


@dataclass(frozen=True)
class GraphInfo:
    """Where a graph comes from and how far to trust it.

    `step_ns` are measured: completion of a step's last task minus completion of the step before (the first counts from
    the window's start), so their sum is `measured_ns`. `unexplained_ns` is device idle time that no rule explains and
    that is therefore frozen into latencies.
    """

    source: str = ""
    window_ns: tuple[int, int] = (0, 0)
    steps: tuple[int, ...] = ()
    step_ns: tuple[int, ...] = ()
    measured_ns: int = 0
    ranks: tuple[int, ...] = (0,)
    world_size: int = 1
    devices: tuple[DeviceInfo, ...] = ()
    unexplained_ns: int = 0
    warnings: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def of_operations(self) -> bool:
        """Whether the tasks are whole operations of workers (straggler/jobgraph.py), not calls and kernels."""
        return self.facts.get("steps_found_by") == OPERATIONS

    @property
    def evidence(self) -> Evidence | None:
        """What a second profile said; None without one."""
        found = self.facts.get("evidence")
        return found if isinstance(found, Evidence) else None
