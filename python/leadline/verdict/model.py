"""What a verdict is: the account of one step, the resource that sets its length, the sentence. Plain data.

Times are nanoseconds of one step (of the run, where nothing repeats) and shares are of that step: `of` says which. The
parts of a lane add up to it exactly; unexplained time is a separate part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leadline._dataclass import asdict, dataclass

FORMAT = {"name": "leadline-verdict", "version": 1}

CLASSES: Mapping[str, str] = {
    "compute": "compute-bound on the CPU",
    "memory": "memory-bound on the CPU",
    "random": "bound by random numbers on the CPU",
    "python": "Python-bound",
    "numpy": "bound by NumPy on the CPU",
    "imports": "imports modules",
    "dispatch": "dispatch-bound: many small operators",
    "framework": "bound by the framework's Python code between operators",
    "operator": "bound by an operator that computes nothing (allocation, or set-up at the first use of a device)",
    "optimizer": "bound by the optimizer",
    "data": "waits for data",
    "ranks": "waits for other ranks",
    "device": "device-bound",
    "launch": "launch-bound: the device waits for the CPU",
    "synchronisation": "synchronises with the device",
    "core": "waits for a core",
    "blocked": "waits",
    "compile": "compiles",
    "saving": "saves",
    "collection": "collects garbage",
    "rare": "bound by what does not happen in every step",
    "cannot_tell": "cannot tell",
}
"""Every class of verdict, with the words that its sentence begins with."""


@dataclass(frozen=True)
class Place:
    """Where a part is: the user's line (the edit goes there or above), and what runs below it."""

    file: str
    line: int
    function: str
    short: str
    what: str
    """The operator, Python function or wait that takes the time there."""
    below: str
    """The first library function below the user's line, where a library holds the loop; else empty."""
    ns: int

    @property
    def text(self) -> str:
        """`train.py:41`, empty where no line is known."""
        return f"{self.short}:{self.line}" if self.short and self.line else self.short


@dataclass(frozen=True)
class Part:
    """`lane`: "thread" or "device"; `group`: "core", "wait", "busy", "idle" or "unexplained"; `known`: "measured",
    "sampled" or "estimated"; `sure_ns`: two standard deviations where samples tell, else 0."""

    key: str
    label: str
    lane: str
    group: str
    ns: int
    share: float
    known: str
    sure_ns: int
    places: tuple[Place, ...] = ()


@dataclass(frozen=True)
class Fix:
    """`do`: imperative, with the line to edit where one is known. Gains are at most what the critical resource leaves;
    `known`: what they rest on; `rule`: the finding that says more."""

    do: str
    place: Place | None
    gain_ns: int
    low_ns: int
    high_ns: int
    known: str
    rule: str
    measured_by: str = ""
    """The command that measures the gain, where the profile bounds it badly; else empty."""
    tried: str = ""
    """What `leadline try` has measured of it, beside what was predicted; empty where it was not tried."""


@dataclass(frozen=True)
class Account:
    """One step of one rank. `of`: "step" or "run"; `parts`: of both lanes, each lane in order of size."""

    of: str
    wall_ns: int
    steps: int
    rank: int
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()
    called: int = 0
    """Operators that Python calls in a step, without those that operators call."""

    def lane(self, name: str) -> tuple[Part, ...]:
        return tuple(one for one in self.parts if one.lane == name)

    def ns(self, *keys: str) -> int:
        return sum(one.ns for one in self.parts if one.key in keys)

    def share(self, *keys: str) -> float:
        """Of the step, 0 to 1."""
        return self.ns(*keys) / self.wall_ns if self.wall_ns > 0 else 0.0


@dataclass(frozen=True)
class Received:
    """One source of measurements: how many `arrived`, and how many were `expected`, those known to be lost included."""

    source: str
    arrived: int
    expected: int

    @property
    def share(self) -> float:
        """0 to 1."""
        return self.arrived / self.expected if self.expected else 1.0


@dataclass(frozen=True)
class Verdict:
    """`kind`: a key of CLASSES; `sentence`: the first line without the program; `because`: what is known
    of the place, then at most three facts with figures; `fixes`: at most three; `trust`: one line."""

    kind: str
    sentence: str
    place: Place | None
    because: tuple[str, ...]
    fixes: tuple[Fix, ...]
    trust: str
    account: Account | None
    ask: str = ""
    """The command that gets what is missing; empty where nothing is."""
    title: str = ""
    """What repeated and how long it took, where that is not the account's steps; empty where it is."""
    received: tuple[Received, ...] = ()
    """Of each source that delivered or lost something."""


def as_object(verdict: Verdict) -> dict[str, Any]:
    """As `json.dumps` takes it, with stable keys; docs/verdict.md explains them."""
    return {"format": dict(FORMAT), **asdict(verdict)}
