"""One side of a trial: a command, the directory it runs in, and its remedies."""

from __future__ import annotations

from collections.abc import Mapping

from leadline._dataclass import dataclass, field
from leadline.remedies.base import NotApplied, Remedy

BASELINE = "baseline"


@dataclass(frozen=True)
class Variant:
    """`remedies`: with the user's file that each is of, or an empty text."""

    name: str
    argv: tuple[str, ...]
    folder: str
    remedies: tuple[tuple[Remedy, str], ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def precision(self) -> str:
        """The coarsest type that a remedy brings."""
        kinds = [remedy.precision for remedy, _ in self.remedies]
        return next((kind for kind in kinds if kind != "float32"), "float32")

    @property
    def samples(self) -> float:
        product = 1.0
        for remedy, _ in self.remedies:
            product *= remedy.samples
        return product

    @property
    def computes_else(self) -> str:
        """What a remedy changes on purpose; empty for none."""
        return next((remedy.changes for remedy, _ in self.remedies if remedy.computes_else), "")

    def environment(self) -> dict[str, str]:
        """Raises NotApplied."""
        found = dict(self.variables)
        for remedy, _ in self.remedies:
            found.update(remedy.environment())
        return found

    def refused(self) -> str:
        """Why it cannot even begin; empty where it can."""
        try:
            self.environment()
        except NotApplied as reason:
            return str(reason)
        return ""
