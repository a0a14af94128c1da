"""What a scenario is: a name, parameters with units, whether it applies, and an edit of a graph with its assumptions.

A scenario edits the graph that it is given (the caller passes a copy) and is called once for each end of the range:
LOW is the shortest step time that can be defended, HIGH the longest. Scenarios compose by being applied one after
another to the same graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from leadline._dataclass import dataclass, field
from leadline.hardware.gpus import Gpu, find_gpu
from leadline.profiles.makers import in_amds_words
from leadline.whatif.draws import Draw
from leadline.whatif.graph import Graph
from leadline.whatif.simulator import Schedule
from leadline.whatif.units import Unit, UnitError, parse


class ScenarioError(ValueError):
    """A scenario or its parameters make no sense for this graph; the message says why and what to do."""


@dataclass(frozen=True)
class Parameter:
    """One value that `--set name=value` may give. `default` is written as a user would; None means there is none."""

    name: str
    unit: Unit
    meaning: str
    default: str | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Values:
    """Parameter values in base units (see units.py), defaults filled in."""

    numbers: Mapping[str, float] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    given: frozenset[str] = frozenset()
    """Names that the user set."""

    def number(self, name: str) -> float:
        return self.numbers[name]

    def optional(self, name: str) -> float | None:
        return self.numbers.get(name)

    def text(self, name: str) -> str:
        return self.texts.get(name, "")


@dataclass(frozen=True)
class Applied:
    """The edited graph and what it rests on."""

    graph: Graph
    assumptions: tuple[str, ...] = ()
    applied_to: Mapping[str, int] = field(default_factory=dict)
    """What was changed and how many: {"kernels": 120}."""
    warnings: tuple[str, ...] = ()
    samples: float = 1.0
    """Samples that one step handles, relative to before; the speed-up counts samples per second."""
    schedule: Schedule | None = None
    warm_up_steps: int = 0
    """Steps at the window's start that only set the scene and do not count."""


class Scenario(ABC):
    """One optimisation. Stateless; found by its name."""

    name: ClassVar[str]
    advice: ClassVar[str]
    """What to do, in the words of a colleague; one sentence without a gain."""
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    hypothetical: ClassVar[bool] = False
    """True for a question that no change of the program answers (a faster device); listed apart from advice."""
    never_slower: ClassVar[bool] = False
    """True where the change only takes work or waiting away, so that no error of the graph makes it a loss."""
    of_operations: ClassVar[bool] = False
    """True where the question makes sense of whole operations of workers, without the kernels in them."""
    costs_time: ClassVar[bool] = False
    """True where the purpose is memory and the step may take longer."""

    def variants(self) -> tuple[Mapping[str, str], ...]:
        """Settings under which the ranking asks this scenario; one without settings by default."""
        return ({},)

    def title(self, values: Values) -> str:
        """Name in a text, with what tells variants apart."""
        return self.name

    def advice_on(self, graph: Graph) -> str:
        """`advice` in the words of the devices' maker."""
        return makers_words(graph, self.advice)

    @abstractmethod
    def applicable(self, graph: Graph, values: Values) -> str | None:
        """None, or one sentence that says why the scenario has nothing to work on."""

    @abstractmethod
    def apply(self, graph: Graph, values: Values, draw: Draw) -> Applied:
        """Edits `graph` in place. Raises ScenarioError when the parameters do not fit it."""

    def read(self, settings: Mapping[str, str]) -> Values:
        """Values from settings as the user wrote them; those of other scenarios are ignored. Raises ScenarioError."""
        numbers: dict[str, float] = {}
        texts: dict[str, str] = {}
        for parameter in self.parameters:
            text = settings.get(parameter.name, parameter.default)
            if text is None:
                continue
            if parameter.choices and text not in parameter.choices:
                raise ScenarioError(
                    f"{self.name}: {parameter.name}={text} is unknown; choose {', '.join(parameter.choices)}."
                )
            try:
                value = parse(text, parameter.unit, parameter.name)
            except UnitError as error:
                raise ScenarioError(f"{self.name}: {error}") from error
            if isinstance(value, str):
                texts[parameter.name] = value
            else:
                numbers[parameter.name] = value
        given = frozenset(settings) & {parameter.name for parameter in self.parameters}
        return Values(numbers, texts, given)


def gpu_of(graph: Graph) -> Gpu | None:
    """The GPU model that the trace names; None where it is missing or not in the factor files."""
    return next((found for device in graph.info.devices if (found := find_gpu(device.name)) is not None), None)


def is_amd(graph: Graph) -> bool:
    """Whether the devices are AMD's."""
    gpu = gpu_of(graph)
    return (gpu is not None and gpu.vendor == "amd") or any("AMD" in device.name for device in graph.info.devices)


def makers_words(graph: Graph, text: str) -> str:
    """A sentence in the words of the devices' maker: `HIP graph`, `compute units`."""
    return in_amds_words(text) if is_amd(graph) else text


def count(**parts: int) -> dict[str, int]:
    """`applied_to` without the zeros; names with underscores become words."""
    return {name.replace("_", " "): number for name, number in parts.items() if number}


def require_positive(scenario: str, values: Values, names: Sequence[str]) -> None:
    """Raises ScenarioError when one of the numbers is 0 or missing."""
    for name in names:
        value = values.optional(name)
        if value is None:
            raise ScenarioError(f"{scenario} needs {name}: add --set {name}=VALUE.")
        if value <= 0:
            raise ScenarioError(f"{scenario}: {name} must be greater than 0.")
