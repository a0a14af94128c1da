"""`metaflow`: layers substituted by others (MetaFlow, TASO): kernels of the old layers out, kernels of the new ones in.

The substitutions come from a JSON file (Daydream 5.2: new layers are mostly existing layers with other dimensions, so
their kernel times are inferred from profiled ones):

    {"substitutions": [
      {"remove": ["Conv2d_1", "ReLU_1"],
       "insert": [{"name": "fused conv", "like": "Conv2d_1", "scale": 1.05},
                  {"name": "merge", "forward_us": 12.5, "backward_us": 30}]}]}

`remove` and `like` are regular expressions on whole layer names. `like` times `scale` gives the time of a new layer's
forward and backward pass; explicit times go before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leadline._dataclass import dataclass
from leadline.units import percent
from leadline.whatif.draws import Draw, technique
from leadline.whatif.edits import (
    calls_of,
    launch_cost_ns,
    launch_latency_ns,
    launcher_of,
    main_lane,
    on_lane,
    step_parts,
)
from leadline.whatif.graph import Graph
from leadline.whatif.kinds import IntArray, Phase, Selection, TaskKind
from leadline.whatif.layerwork import worker_kinds
from leadline.whatif.model import work_ns
from leadline.whatif.scenarios.base import Applied, Parameter, Scenario, ScenarioError, Values, count
from leadline.whatif.units import Unit


@dataclass(frozen=True)
class NewLayer:
    """A layer to insert; times in ns, None where they follow from `like`."""

    name: str
    like: str
    scale: float
    forward_ns: float | None
    backward_ns: float | None


@dataclass(frozen=True)
class Substitution:
    remove: tuple[str, ...]
    insert: tuple[NewLayer, ...]


class MetaFlow(Scenario):
    """Applies the substitutions of a specification."""

    name = "metaflow"
    advice = "substitute layers by cheaper equivalents (MetaFlow)"
    parameters = (Parameter("spec", Unit.TEXT, "JSON file with the substitutions, or the JSON itself"),)

    def applicable(self, graph: Graph, values: Values) -> str | None:
        if not values.text("spec"):
            return "no substitution is given (--set spec=FILE.json)"
        if len(graph.layers) < 2:
            return "the trace has no layer names; record with module names (with_stack or with_modules)"
        return None

    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        removed = inserted = 0
        doubt = technique("layer_of_other_shape", larger_is_faster=False)
        substitute = _Substitute(graph, doubt.at(draw))
        for substitution in read_spec(values.text("spec")):
            gone, added = substitute.everywhere(substitution)
            removed, inserted = removed + gone, inserted + added
        if not removed:
            raise ScenarioError("metaflow: no layer of the trace matches what the specification removes.")
        return Applied(
            graph,
            (
                "new layers take the time of the layers they are said to be like, times the given scale",
                f"times that are inferred that way are known to {percent(doubt.pessimistic - 1)}",
            ),
            count(removed_kernels=removed, inserted_kernels=inserted),
        )


def read_spec(text: str) -> list[Substitution]:
    """Substitutions from a JSON file or literal. Raises ScenarioError in one sentence."""
    source = text if text.lstrip().startswith("{") else None
    if source is None:
        try:
            source = Path(text).read_text(encoding="utf-8")
        except OSError as error:
            raise ScenarioError(f"metaflow: {text} cannot be read ({error.strerror}); give a JSON file.") from error
    try:
        content = json.loads(source)
        return [
            Substitution(tuple(_names(row["remove"])), tuple(_new_layer(item) for item in row.get("insert", [])))
            for row in content["substitutions"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ScenarioError(
            f"metaflow: the specification is not as expected ({type(error).__name__}: {error}); it needs "
            '{"substitutions": [{"remove": ["layer"], "insert": [{"name": ..., "like": ..., "scale": 1.0}]}]}.'
        ) from error


def _names(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(item) for item in value]


def _new_layer(item: Mapping[str, Any]) -> NewLayer:
    def time(key: str) -> float | None:
        return float(item[key]) * 1000 if key in item else None

    layer = NewLayer(str(item["name"]), str(item.get("like", "")), float(item.get("scale", 1.0)), time("forward_us"),
                     time("backward_us"))  # fmt: skip
    if not layer.like and layer.forward_ns is None and layer.backward_ns is None:
        raise ValueError(f"{layer.name} needs `like` or `forward_us`")
    return layer


class _Substitute:
    """Carries substitutions out in every step of every rank."""

    def __init__(self, graph: Graph, doubt: float) -> None:
        self._graph = graph
        self._doubt = doubt
        self._latency_ns = launch_latency_ns(graph)
        self._cost_ns = launch_cost_ns(graph, technique("launch_cpu_ns", larger_is_faster=False).expected)

    def everywhere(self, substitution: Substitution) -> tuple[int, int]:
        """Returns the number of removed and of inserted device tasks."""
        graph = self._graph
        launcher = launcher_of(graph)
        inserted = 0
        removed = Selection([])
        likes = {layer: graph.select(layer=_whole(layer.like), kind=worker_kinds(graph))
                 for layer in substitution.insert if layer.like}  # fmt: skip
        for phase in (Phase.FORWARD, Phase.BACKWARD):
            old = Selection([])
            for pattern in substitution.remove:
                old = old | graph.select(layer=_whole(pattern), phase=phase, kind=worker_kinds(graph))
            removed = removed | old
            for step, rank, mine in step_parts(graph, old):
                for layer in substitution.insert:
                    like = likes.get(layer, Selection([])) & graph.select(phase=phase, step=step, rank=rank)
                    time = self._time(layer, phase, like)
                    if time > 0:
                        self._insert(mine, layer.name, int(time), phase, step, launcher)
                        inserted += 1
        graph.remove(removed | calls_of(graph, removed))
        return len(removed), inserted

    def _time(self, layer: NewLayer, phase: Phase, like: Selection) -> float:
        explicit = layer.forward_ns if phase == Phase.FORWARD else layer.backward_ns
        return explicit if explicit is not None else work_ns(self._graph, like) * layer.scale * self._doubt

    def _insert(self, old: Selection, name: str, time_ns: int, phase: Phase, step: int, launcher: IntArray) -> None:
        """One task for the new layer where the old one's work begins, with a launch where the old one had launches."""
        graph = self._graph
        lane = main_lane(graph, old)
        first = int(on_lane(graph, old, lane)[0])
        where: dict[str, Any] = {"phase": phase, "step": step, "layer": name}
        at = int(launcher[first])
        if at < 0:
            graph.insert(name, TaskKind(int(graph.column("kind")[first])), lane, time_ns, after=first, **where)
            return
        thread = int(graph.column("lane")[at])
        call = graph.insert(f"launch {name}", TaskKind.CPU, thread, self._cost_ns, after=at, **where)
        graph.insert(name, TaskKind.GPU, lane, time_ns, after=first, launch=call, latency_ns=self._latency_ns, **where)


def _whole(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ScenarioError(f"metaflow: {pattern!r} is not a regular expression ({error}); correct it.") from error
    return f"^(?:{pattern})$"
