"""What a rule is: a name, options with their defaults and reasons, and a question to a `Case`.

A rule is one file with one subclass of `Rule`. It raises `CannotTell` where the profile cannot answer, and returns
nothing where all is well. It never reads single nodes in a Python loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from leadline._dataclass import dataclass
from leadline.analysis.case import CannotTell, Case
from leadline.analysis.findings import Finding, Gain, Line, Severity

__all__ = ["CannotTell", "Case", "Finding", "Gain", "Line", "Option", "Rule", "RuleError", "Severity", "Values"]


class RuleError(ValueError):
    """A rule or an option that does not exist, or a value that makes no sense; the message says what to do."""


@dataclass(frozen=True)
class Option:
    """A threshold that `--set RULE.NAME=VALUE` changes. `unit`: "%", "ns", "bytes" or "1"; `reason`: why it is this."""

    name: str
    default: float
    unit: str
    reason: str


Values = Mapping[str, float]
"""Option names to values in base units: shares 0 to 1 for "%"."""


class Rule(ABC):
    """One kind of problem. Stateless; found by its name."""

    name: ClassVar[str]
    asks: ClassVar[str]
    """What it looks for, in one sentence."""
    options: ClassVar[tuple[Option, ...]] = ()
    general: ClassVar[bool] = False
    """True for a rule whose finding says less than another rule's on the same line; it is then left out."""

    on_cpu: ClassVar[bool] = False
    """True for a rule whose remedy spares the CPU only: beside a busy device it saves at most what that idles."""

    @abstractmethod
    def check(self, case: Case, values: Values) -> list[Finding]:
        """The findings, the most important first. Raises CannotTell."""

    @property
    def learn_more(self) -> str:
        return f"docs/rules/{self.name}.md"

    def values(self, settings: Mapping[str, str]) -> Values:
        """Options from settings as the user wrote them; raises RuleError."""
        known = {option.name: option for option in self.options}
        found = {name: _base(option.default, option.unit) for name, option in known.items()}
        for name, text in settings.items():
            if name not in known:
                options = ", ".join(known) or "none"
                raise RuleError(f"{self.name} has no option {name!r}; its options are: {options}.")
            found[name] = _base(_number(text, known[name], self.name), known[name].unit)
        return found


def _base(value: float, unit: str) -> float:
    return value / 100 if unit == "%" else value


def _number(text: str, option: Option, rule: str) -> float:
    """`5`, `5%`, `10us`: a number, its unit optional, in the option's unit."""
    scales = {"%": {"%": 1.0}, "ns": {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}}.get(option.unit, {})
    scales |= {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9} if option.unit == "bytes" else {}
    number, scale = text.strip(), 1.0
    for ending in sorted(scales, key=len, reverse=True):
        if number.endswith(ending):
            number, scale = number[: -len(ending)].strip(), scales[ending]
            break
    try:
        value = float(number) * scale
    except ValueError:
        value = float("nan")
    if not 0 <= value < float("inf"):
        unit = "" if option.unit == "1" else f" in {option.unit}"
        raise RuleError(f"{rule}.{option.name}={text} is not a number{unit}; write it like {option.default:g}.")
    return value
