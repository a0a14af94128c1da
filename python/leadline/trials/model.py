"""What a trial says: one row for each variant, with one verdict. Plain data. Times are nanoseconds of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leadline._dataclass import asdict, dataclass, field

FORMAT = {"name": "leadline-trial", "version": 1}

FASTER, SLOWER, NO_DIFFERENCE = "faster", "slower", "no difference"
COMPUTES_ELSE, CANNOT_COMPARE = "computes something else", "cannot be compared"
NOT_APPLIED, FAILED = "not applied", "failed"
MEASURED = (FASTER, SLOWER, NO_DIFFERENCE)
VERDICTS = (FASTER, SLOWER, NO_DIFFERENCE, COMPUTES_ELSE, CANNOT_COMPARE, NOT_APPLIED, FAILED)

EQUAL, WITHIN_SPREAD, DIFFERENT, UNKNOWN = "equal", "within the spread", "different", "unknown"


class TrialError(Exception):
    """A trial that cannot go on; the message is a sentence for the user."""


class ScratchFull(TrialError):
    """Runs have no room to write; rounds until then count."""


@dataclass(frozen=True)
class Change:
    """Relative change of a step's time (of a sample's, where batches differ): -0.3 is 30 % shorter. In 19 cases of 20
    it lies from `low` to `high`."""

    median: float
    low: float
    high: float
    rounds: int

    @property
    def smallest(self) -> float:
        """The largest change that the runs leave open."""
        return max(abs(self.low), abs(self.high))


@dataclass(frozen=True)
class Equality:
    """`kind`: EQUAL, WITHIN_SPREAD, DIFFERENT or UNKNOWN; `sentence`: how far apart, and from which step on."""

    kind: str
    sentence: str
    last: float | None = None
    """The last value given to `backward()`."""
    first_step: int = -1
    """From which step on it is different; -1 where it is not."""


@dataclass(frozen=True)
class Predicted:
    """Change of the step as it was predicted, and the range that was meant to hold it; `by`: a what-if scenario or the
    rule of a finding."""

    median: float
    low: float
    high: float
    by: str


def has_held(measured: Mapping[str, float], predicted: Mapping[str, float]) -> bool | None:
    """Whether the measured change lies in the predicted range; None where its median does not, but the change may (its
    own interval reaches the range): the measurement is too coarse to judge."""
    if predicted["low"] <= measured["median"] <= predicted["high"]:
        return True
    apart = measured["high"] < predicted["low"] or measured["low"] > predicted["high"]
    return False if apart else None


@dataclass(frozen=True)
class Row:
    """One variant. `sentence`: the verdict in words; `reason`: why there is no other, and the last lines of a program
    that failed."""

    name: str
    verdict: str
    sentence: str
    step_ns: float = 0.0
    change: Change | None = None
    equality: Equality | None = None
    memory: Mapping[str, int] = field(default_factory=dict)
    predicted: Predicted | None = None
    held: bool | None = None
    """See `has_held`; None, too, where there is no range or no measurement."""
    reason: str = ""
    first_steps_ns: float = 0.0
    """Until the end of the warm-up: imports, and compiling where something is compiled."""


@dataclass(frozen=True)
class Trial:
    """All rows, the baseline first. `notes`: sentences on what was not as asked; `complete`: not cut short."""

    program: str
    rows: Sequence[Row]
    steps: int
    warm_up: int
    mark: str
    rounds: int
    noise: float
    """Spread of the baseline from run to run, as a share of its step."""
    notes: tuple[str, ...]
    versions: Mapping[str, str]
    complete: bool = True
    sources: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of the program's own files as they ran."""


def as_object(trial: Trial) -> dict[str, Any]:
    """As `json.dumps` takes it, with stable keys; docs/how-to/try.md explains them."""
    found = asdict(trial)
    del found["sources"]
    return {"format": dict(FORMAT), **found, "rows": [asdict(row) for row in trial.rows]}
