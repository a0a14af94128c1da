"""What a finding says that a remedy saves: sums over all steps, turned into time per step. Part of a `Case`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property

from leadline.analysis.columns import Mask, Rows
from leadline.analysis.findings import Gain
from leadline.analysis.loop import Loop


class Gains(ABC):
    """`loop` raises CannotTell where there is none; see `Case` for the rest."""

    @property
    @abstractmethod
    def loop(self) -> Loop: ...

    @property
    @abstractmethod
    def known_loop(self) -> Loop | None: ...

    @cached_property
    @abstractmethod
    def between_ns(self) -> float: ...

    @abstractmethod
    def python_ns(self, wanted: Mask) -> float: ...

    @abstractmethod
    def mask(self, rows: Iterable[int] | Rows) -> Mask: ...

    def gain_of(self, rows: Rows, ns: float, fractions: Sequence[float], basis: str) -> Gain:
        """The gain where a remedy spares these calls: of `ns` in operators the fractions (low, expected, high), and of
        the Python that calls them a third of an even share, that share, and three times as much, since calls differ."""
        low, expected, high = fractions
        python = self.python_ns(self.mask(rows))
        of_ns = self.loop.step_ns * self.loop.steps
        most = min(ns * high + min(3 * python, self.between_ns), of_ns)
        sums = ((ns + python / 3) * low, min((ns + python) * expected, most), most)
        note = (
            f"; up to {_percent(min(3 * python, self.between_ns) / of_ns)} of the step for the Python that calls them"
        )
        return self.gain_sums(sums, basis + (note if python >= 0.005 * of_ns else ""))

    def gain_sums(self, sums: Sequence[float], basis: str) -> Gain:
        """The gain per step from (low, expected, high) over all steps."""
        loop = self.loop
        low, expected, high = (int(min(max(ns, 0.0) / loop.steps, loop.step_ns)) for ns in sums)
        return Gain(low, expected, high, basis, "step", int(loop.step_ns))

    def gain(self, ns: float, fractions: Sequence[float], basis: str) -> Gain:
        """The gain per step where `ns` over all steps shrinks by these fractions (low, expected, high)."""
        loop = self.loop
        part = min(max(ns, 0.0) / loop.steps, loop.step_ns)
        low, expected, high = (int(part * fraction) for fraction in fractions)
        return Gain(low, expected, high, basis, "step", int(loop.step_ns))

    def gain_beside(self, ns: float, fractions: Sequence[float], basis: str, most_ns: float = 0.0) -> Gain:
        """The same for time that the step's own does not hold, such as compilation; `most_ns`: what of the step's own
        may go with it."""
        loop = self.loop
        part = max(ns, 0.0) / loop.steps
        low, expected, high = (int(part * fraction) for fraction in fractions)
        high = min(high + int(most_ns / loop.steps), int(loop.step_ns + part))
        return Gain(low, expected, high, basis, "step", int(loop.step_ns + part))

    def no_gain(self, basis: str) -> Gain:
        """No time to win, and why."""
        loop = self.known_loop
        return Gain(0, 0, 0, basis, "step" if loop else "run", int(loop.step_ns) if loop else 0)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
