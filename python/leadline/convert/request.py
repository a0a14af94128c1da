"""What is to be exported, and why it cannot be: the vocabulary of exporters and their callers."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from leadline._dataclass import dataclass, field


class What(Enum):
    """The two sides of a profile: where time went, and when."""

    TREE = "tree"
    WINDOW = "window"


@dataclass(frozen=True)
class Request:
    """What an exporter shall write."""

    what: What = What.TREE
    metric: str | None = None
    """The only metric wanted; None for what suits the format."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Choices of one format, by the names that its entry in the list declares."""


class ExportError(ValueError):
    """The profile cannot be put into the format; the message is a sentence."""


class UnknownMetricError(ExportError):
    """The profile or the format has no such metric; the message lists those there are."""


class TooLargeError(ExportError):
    """The format repeats every path in full, and the paths of this profile are too deep for that."""


class NothingThereError(ExportError):
    """The profile does not hold what was asked for; the message says how to record it."""
