"""What would a change gain? Load a trace window as a dependency graph, edit it, simulate it."""

from leadline.whatif.builder import GraphBuilder
from leadline.whatif.graph import DeviceInfo, Graph, GraphInfo
from leadline.whatif.kinds import (
    Discipline,
    EdgeType,
    GraphError,
    Lane,
    LaneKind,
    Phase,
    Selection,
    Task,
    TaskKind,
)
from leadline.whatif.load import load
from leadline.whatif.simulator import Result, simulate

__all__ = [
    "DeviceInfo",
    "Discipline",
    "EdgeType",
    "Graph",
    "GraphBuilder",
    "GraphError",
    "GraphInfo",
    "Lane",
    "LaneKind",
    "Phase",
    "Result",
    "Selection",
    "Task",
    "TaskKind",
    "load",
    "simulate",
]
