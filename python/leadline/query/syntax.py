"""A query as plain data, as the parser leaves it. Positions count characters of the text, for messages."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Literal, TypeAlias

from leadline._dataclass import dataclass
from leadline.schema import FrameKind

TEXT_FIELDS = ("kind", "name", "file", "function", "module", "class", "phase", "thread", "process")
"""Fields that hold a text per node; a query compares them with words."""

CLAUSES = ("where", "by", "show", "sort", "top")
"""What may follow the path, in this order."""


@dataclass(frozen=True)
class Pattern:
    """What a name or file must look like: the whole of it (`glob`, `exact`), or some part (`regex`)."""

    text: str
    how: Literal["glob", "exact", "regex"]
    position: int


@dataclass(frozen=True)
class Number:
    """In the base unit of its dimension: `ns`, `bytes`, `%` (as a fraction) or `1`."""

    value: float
    dimension: str
    position: int


@dataclass(frozen=True)
class Text:
    value: str
    position: int


@dataclass(frozen=True)
class Field:
    """A column by name, or `metric.stat`."""

    name: str
    stat: str
    position: int

    def __str__(self) -> str:
        return f"{self.name}.{self.stat}" if self.stat else self.name


@dataclass(frozen=True)
class Arithmetic:
    operator: Literal["+", "-", "*", "/"]
    left: Value
    right: Value
    position: int


Value: TypeAlias = Number | Text | Field | Arithmetic


@dataclass(frozen=True)
class Compare:
    """`in` compares with several values, every other operator with one."""

    operator: Literal["=", "!=", "<", "<=", ">", ">=", "~", "in"]
    left: Value
    right: tuple[Value, ...]
    position: int


@dataclass(frozen=True)
class Relation:
    """`under`: a node above is meant by the path; `above`: a node below is; `calls`: a child is."""

    name: Literal["under", "above", "calls"]
    path: Path
    position: int


@dataclass(frozen=True)
class Not:
    part: Condition


@dataclass(frozen=True)
class Both:
    left: Condition
    right: Condition


@dataclass(frozen=True)
class Either:
    left: Condition
    right: Condition


Condition: TypeAlias = Compare | Relation | Not | Both | Either


@dataclass(frozen=True)
class Step:
    """One part of a path. `child`: directly below the part before, else anywhere below it."""

    child: bool
    kind: FrameKind | None
    name: Pattern | None
    file: Pattern | None
    line: int | None
    condition: Condition | None
    position: int


@dataclass(frozen=True)
class Path:
    steps: tuple[Step, ...]
    position: int


@dataclass(frozen=True)
class Query:
    """`events`: rows are events of the trace window at the nodes of the path, else the nodes themselves."""

    text: str
    events: bool
    path: Path
    where: Condition | None
    by: tuple[Field, ...]
    show: tuple[Field, ...]
    sort: Field | None
    descending: bool
    top: int | None


def meant_clause(path_steps: tuple[Step, ...] | list[Step]) -> tuple[Step, str] | None:
    """The first step behind another that is a bare word much like a clause, and that clause."""
    for step in path_steps[1:]:
        word = step.name.text if step.name is not None and step.name.how == "glob" else ""
        near = get_close_matches(word, CLAUSES, 1, 0.7) if step.kind is None and not step.child else []
        if near:
            return step, near[0]
    return None


def anything(position: int) -> Step:
    """The step `...`: any frames."""
    return Step(False, None, None, None, None, None, position)


def unless_any(pattern: Pattern | None) -> Pattern | None:
    """None for `*`, which every name meets."""
    return None if pattern is not None and pattern.how == "glob" and pattern.text == "*" else pattern
