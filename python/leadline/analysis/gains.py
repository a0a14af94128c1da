"""What a finding says that a remedy saves: sums over all steps, turned into time per step. Part of a `Case`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property

from leadline._dataclass import replace
from leadline.analysis.columns import Mask, Rows
from leadline.analysis.findings import Gain
from leadline.analysis.loop import Loop
from leadline.units import percent

RECORDING = (0.0, 0.1, 0.35)
"""Of a forward pass that autograd records for nothing, judged: recording itself, and memory that is kept for a backward
pass and so is not used again while it is warm (low, expected, high)."""


_WARM_MOST, _WARM_EACH, _WARM_USUAL = 0.7, 1.3, 0.25
"""What is left of a step runs faster where other work no longer empties the caches between its parts: by at most 0.7 of
it, and 1.3 of the share that leaves; small operators gain most, large products little (bench/left_warm.py)."""


class Gains(ABC):
    """`loop` raises CannotTell where there is none; see `Case` for the rest."""

    @property
    @abstractmethod
    def loop(self) -> Loop: ...

    @property
    @abstractmethod
    def known_loop(self) -> Loop | None: ...

    @property
    @abstractmethod
    def has_device(self) -> bool: ...

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
        note = f"; up to {percent(min(3 * python, self.between_ns) / of_ns)} of the step for the Python that calls them"
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

    def and_warm(self, gain: Gain) -> Gain:
        """The same where work on other data leaves the step, so that the rest finds its own still warm."""
        of_ns = gain.of_ns
        if of_ns <= 0:
            return gain
        likely, most = gain.expected_ns / of_ns, gain.high_ns / of_ns
        expected = likely + _WARM_USUAL * likely * (1 - likely)
        high = most + min(_WARM_MOST, _WARM_EACH * most) * (1 - most)
        return replace(
            gain,
            expected_ns=int(expected * of_ns),
            high_ns=int(high * of_ns),
            basis=f"{gain.basis}; at most what the remaining code gains from warm caches",
        )

    def at_most(self, ns: float, basis: str) -> Gain:
        """Where only a bound is known: all of `ns` over all steps, and what the rest gains from warm caches."""
        made = self.gain(ns, (0, 0, 1), basis)
        return made if self.has_device else self.and_warm(made)

    def no_gain(self, basis: str) -> Gain:
        """No time to win, and why."""
        loop = self.known_loop
        return Gain(0, 0, 0, basis, "step" if loop else "run", int(loop.step_ns) if loop else 0)
