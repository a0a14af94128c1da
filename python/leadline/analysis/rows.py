"""Rows of the tables by name: operators, modules, phases, device work. Times are nanoseconds (`_ns`), sizes bytes;
nothing is ever NaN."""

from __future__ import annotations

from leadline._dataclass import dataclass


@dataclass(frozen=True)
class Distribution:
    """Measurements as one set: `self` is exclusive of what nested calls took, the others include it."""

    sum: int
    self: int
    min: int
    max: int
    mean: float
    std: float


@dataclass(frozen=True)
class OperatorRow:
    """All calls of one operator. `alloc_bytes` and `gpu_time_ns` are what its call paths caused, exclusively."""

    name: str
    count: int
    time: Distribution
    gpu_time_ns: int
    alloc_bytes: int


@dataclass(frozen=True)
class ModuleRow:
    """One nn.Module by qualified name; times include its submodules, `self` leaves them out.

    `modules`: how many were merged into the row, 1 unless layer numbers are merged.
    """

    name: str
    class_name: str
    time_ns: int
    self_ns: int
    forward_ns: int
    backward_ns: int
    gpu_time_ns: int
    alloc_bytes: int
    modules: int = 1


@dataclass(frozen=True)
class PhaseRow:
    """One phase (forward, backward, optimizer, ...); the rows add up to the total. The empty name is work outside any
    phase.
    """

    name: str
    time_ns: int
    gpu_time_ns: int
    alloc_bytes: int
    operators: int


@dataclass(frozen=True)
class FunctionRow:
    """CPU time of one function (or operator, region, native function) by samples: its own, and with all it called.

    `line` is the one with most of its own time; of a thread, what no Python frame or operator explains is its own.
    """

    kind: str
    name: str
    file: str
    line: int
    self_ns: int
    total_ns: int
    samples: int


@dataclass(frozen=True)
class KernelRow:
    """One kernel, copy or collective by name, over all devices."""

    name: str
    kind: str
    count: int
    gpu_time: Distribution
