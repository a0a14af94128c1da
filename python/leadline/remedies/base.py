"""What a remedy is: a change of a program that needs no edit, and how it knows that it took effect.

A remedy is one file with one subclass of `Remedy`. It sets its hooks in `start`, before the program imports anything,
and tells in `outcome`, behind the last step, whether it changed anything. A remedy that raises fails its own run only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from leadline.remedies.trial import Trial


class RemedyError(ValueError):
    """A remedy or a value that does not exist; the message says what to do."""


class NotApplied(Exception):
    """Raised by a remedy that cannot change this program; the message completes "not applied: ..."."""


class Remedy:
    """One kind of change. Found by its name."""

    name: ClassVar[str]
    changes: ClassVar[str]
    """What it changes, in one sentence."""
    value: ClassVar[str] = ""
    """The value where none is given; empty: the remedy takes none, or needs one (see `needs`)."""
    choices: ClassVar[tuple[str, ...]] = ()
    """Values that it takes; empty for any."""
    needs: ClassVar[str] = ""
    """What its value is, such as "N"; empty where it needs none."""
    may_be: ClassVar[str] = ""
    """What its value may be, such as "FUNCTION", where it needs none."""
    precision: str = "float32"
    """The coarsest type in which it lets the program compute: its results may differ by rounding to it."""
    computes_else: ClassVar[bool] = False
    """It is meant to compute something else; results are then not held against the baseline."""
    samples: float = 1.0
    """Samples of a step, as a multiple of the baseline's."""
    rules: ClassVar[tuple[str, ...]] = ()
    """Findings that it is the remedy of."""
    scenario: ClassVar[str] = ""
    """The what-if scenario that predicts it; empty where there is none."""

    def __init__(self, value: str = "") -> None:
        value = value or self.value
        if self.needs and not value:
            raise RemedyError(f"The fix {self.name} needs a value; write {self.name}={self.needs}.")
        if value and self.choices and value not in self.choices:
            raise RemedyError(f"The fix {self.name} takes {', '.join(self.choices)}, not {value!r}.")
        if value and not (self.needs or self.may_be or self.choices or self.value):
            raise RemedyError(f"The fix {self.name} takes no value; leave out {'=' + value!r}.")
        self.chosen = value
        self.check()

    def check(self) -> None:
        """Raises RemedyError for a value that makes no sense."""

    @property
    def title(self) -> str:
        """As the user writes it: `workers=2`."""
        given = self.chosen and self.chosen != self.value
        return f"{self.name}={self.chosen}" if given else self.name

    @property
    def scenario_settings(self) -> dict[str, str]:
        """Parameters of `scenario`."""
        return {}

    def environment(self) -> dict[str, str]:
        """Variables of the program's environment that it needs. Raises NotApplied."""
        return {}

    def start(self, trial: Trial) -> None:
        """In the program's process, before its first line. Raises NotApplied."""

    def outcome(self, trial: Trial) -> str:
        """Behind the last step: empty where it took effect, else why not ("the program has no Conv2d")."""
        return ""

    def number(self, least: int = 0) -> int:
        """The value as a whole number of at least `least`. Raises RemedyError."""
        if not self.chosen.isdecimal() or int(self.chosen) < least:
            raise RemedyError(f"The fix {self.name} takes a whole number from {least} on, not {self.chosen!r}.")
        return int(self.chosen)
