"""What would a change gain? Load a trace window as a dependency graph, edit it, simulate it.

graph = whatif.load("trace.json.gz")
report = whatif.rank(graph)                                   # every scenario that applies, largest gain first
print("\n".join(whatif.advice(report)))
whatif.predict(graph, ["amp", "fused_optimizer"])             # combined
"""

from leadline.whatif.advice import advice
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
from leadline.whatif.load import graph_of, load
from leadline.whatif.predict import Prediction, Report, gain, predict, rank, replay
from leadline.whatif.scenarios import SCENARIOS, Applied, Parameter, Scenario, ScenarioError
from leadline.whatif.second_profile import with_evidence
from leadline.whatif.simulator import Result, simulate
from leadline.whatif.without import without

__all__ = [
    "SCENARIOS",
    "Applied",
    "DeviceInfo",
    "Discipline",
    "EdgeType",
    "Graph",
    "GraphBuilder",
    "GraphError",
    "GraphInfo",
    "Lane",
    "LaneKind",
    "Parameter",
    "Phase",
    "Prediction",
    "Report",
    "Result",
    "Scenario",
    "ScenarioError",
    "Selection",
    "Task",
    "TaskKind",
    "advice",
    "gain",
    "graph_of",
    "load",
    "predict",
    "rank",
    "replay",
    "simulate",
    "with_evidence",
    "without",
]
