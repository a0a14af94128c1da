"""What the analyzer says: findings with the evidence, the user's lines, the remedy and what it should gain. Plain data.

Times are nanoseconds. `gain` is counted per training step where steps were found (`per` is "step"), else over the run.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

from leadline._dataclass import asdict, dataclass, field


class Severity(str, enum.Enum):
    """`WARNING`: worth a change; `INFO`: worth knowing."""

    WARNING = "warning"
    INFO = "info"


class State(str, enum.Enum):
    """What looking came to. Text, JSON, exit code, page and mcp all say this one."""

    PROBLEM = "problem"
    NONE_FOUND = "none found"
    COULD_NOT_LOOK = "could not look"


EXIT_CODES = {State.NONE_FOUND: 0, State.PROBLEM: 1, State.COULD_NOT_LOOK: 3}
"""Of `leadline analyze --exit-code`; 2 is a wrong command line."""


NO_SHAPES = "shapes were not recorded (leadline why, or leadline run --shapes)"
"""Why a rule could not look that another record of the same program would let look."""

WIDE = 0.15
"""Of the step: half of a range that is wider is measured rather than printed."""


@dataclass(frozen=True)
class Gain:
    """Time that the remedy saves: 0 <= low <= expected <= high. `basis`: what the numbers rest on, one clause."""

    low_ns: int
    expected_ns: int
    high_ns: int
    basis: str
    per: str = "step"
    of_ns: int = 0
    """The time of the whole step (or run) that the gain is part of; 0 where unknown."""

    @property
    def share(self) -> float:
        """Expected gain as a share, 0 to 1, of the step."""
        return self.expected_ns / self.of_ns if self.of_ns > 0 else 0.0

    @property
    def is_wide(self) -> bool:
        """The range says little: half of it is more than `WIDE` of the step."""
        return self.of_ns > 0 and (self.high_ns - self.low_ns) / 2 > WIDE * self.of_ns


@dataclass(frozen=True)
class Line:
    """A line of source. `short`: the file as shown; `text`: the line itself, empty where the file cannot be read or has
    changed; `context`: where it stands ("in the loop at line 41"); `sha256`: of the file it was read from."""

    file: str
    line: int
    function: str
    short: str
    text: str = ""
    context: str = ""
    sha256: str = ""


@dataclass(frozen=True)
class Finding:
    """One problem. `paths`: nodes of the tree that show it; `lines`: the most telling first; `evidence`: sentences with
    numbers; `weight`: share of the step (of the peak, for memory) that is concerned, for ranking."""

    rule: str
    severity: Severity
    title: str
    gain: Gain
    paths: tuple[int, ...]
    lines: tuple[Line, ...]
    evidence: tuple[str, ...]
    remedy: str
    learn_more: str = ""
    weight: float = 0.0
    scenario: str = ""
    """The what-if scenario that can say more about the gain; empty where there is none."""
    fix: str = ""
    """What `leadline try --fix` takes to make this change, such as "workers=2"; empty where it has none."""
    measured_by: str = ""
    """The command that measures the gain of the remedy on the program itself."""
    of_place: bool = False
    """Whether the remedy is what the facts of the place itself say (rules/place), and no guess by its kind."""
    changes_result: bool = False
    """Whether the remedy changes what the program computes, so that it is a choice of the user's and no mere repair."""
    change_at: Line | None = None
    """Where the remedy changes the program, where that is not the first line."""

    @property
    def change_line(self) -> Line | None:
        """Where to change the program; None where no line is known."""
        return self.change_at or next(iter(self.lines), None)


@dataclass(frozen=True)
class NotApplicable:
    """A rule that could not be asked of this profile, and why."""

    rule: str
    reason: str


@dataclass(frozen=True)
class Failed:
    """A rule of the user's that raised; `error` is one line."""

    rule: str
    error: str


@dataclass(frozen=True)
class Findings:
    """The answer to one profile: findings with the most important first."""

    findings: tuple[Finding, ...]
    not_applicable: tuple[NotApplicable, ...] = ()
    failed: tuple[Failed, ...] = ()
    steps: int = 0
    step_ns: int = 0
    notes: tuple[str, ...] = field(default=())
    unlooked: str = ""
    """Why the rules could not look at the profile's steps; empty where they could."""

    @property
    def state(self) -> State:
        if any(one.severity is Severity.WARNING for one in self.findings):
            return State.PROBLEM
        return State.COULD_NOT_LOOK if self.unlooked else State.NONE_FOUND

    @property
    def state_text(self) -> str:
        """`no problem found`, `could not look: no training step or repeated call was found`."""
        return {
            State.PROBLEM: "problems found",
            State.NONE_FOUND: "no problem found",
            State.COULD_NOT_LOOK: f"could not look: {self.unlooked}",
        }[self.state]

    def __iter__(self) -> Any:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __getitem__(self, place: int) -> Finding:
        return self.findings[place]


def as_object(found: Findings) -> dict[str, Any]:
    """As `json.dumps` takes it, with stable keys."""
    return {
        "format": {"name": "leadline-findings", "version": 1},
        "state": found.state.value,
        "state_text": found.state_text,
        "unlooked": found.unlooked,
        "steps": found.steps,
        "step_ns": found.step_ns,
        "findings": [{**asdict(one), "severity": one.severity.value} for one in found.findings],
        "not_applicable": [asdict(one) for one in found.not_applicable],
        "failed": [asdict(one) for one in found.failed],
        "notes": list(found.notes),
    }


def from_object(saved: Mapping[str, Any]) -> Findings:
    """What `as_object` made; raises ValueError for anything else."""
    try:
        return Findings(
            tuple(_finding(one) for one in saved["findings"]),
            tuple(NotApplicable(**one) for one in saved["not_applicable"]),
            tuple(Failed(**one) for one in saved["failed"]),
            int(saved["steps"]),
            int(saved["step_ns"]),
            tuple(saved["notes"]),
            str(saved.get("unlooked", "")),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"These are not findings of leadline analyze ({type(error).__name__}: {error}).") from None


def _finding(one: Mapping[str, Any]) -> Finding:
    return Finding(
        **{
            **one,
            "severity": Severity(one["severity"]),
            "gain": Gain(**one["gain"]),
            "paths": tuple(one["paths"]),
            "lines": tuple(Line(**line) for line in one["lines"]),
            "evidence": tuple(one["evidence"]),
        }
    )
