"""The verdict of a comparison: 0 passed, 1 failed, 3 no verdict: not comparable, or not to be told from noise."""

from __future__ import annotations

from leadline._dataclass import dataclass
from leadline.compare.comparison import Change, Diff, Figure
from leadline.compare.limits import SLOWDOWN

PASSED, FAILED, UNCLEAR = 0, 1, 3
_NAMED = 5


@dataclass(frozen=True)
class Limits:
    """`slowdown`, `memory`: shares by which a step may take longer, and peak and allocated bytes may grow (None: not
    looked at). `allowed`: aspects of `comparable.ASPECTS` that may differ."""

    slowdown: float | None = SLOWDOWN
    memory: float | None = None
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """`code` as an exit code; `reasons`: sentences, the decisive first; `paths`: the paths that failed."""

    code: int
    reasons: tuple[str, ...]
    paths: tuple[Change, ...] = ()

    @property
    def word(self) -> str:
        return {PASSED: "passed", FAILED: "failed", UNCLEAR: "no verdict"}[self.code]


def judge(diff: Diff, limits: Limits) -> Verdict:
    """Whether side B of `diff` keeps `limits` against side A."""
    hindrances = [sentence for aspect, sentence in diff.differences if aspect not in limits.allowed]
    if hindrances:
        return Verdict(UNCLEAR, ("The profiles are not comparable.", *hindrances))
    failed, unclear, passed = [], [], []
    slower = False
    if limits.slowdown is not None:
        if not diff.step.a:
            return Verdict(UNCLEAR, ("The baseline has no measured time.",))
        measured = [("A step", diff.step)] + ([("Device work of a step", diff.gpu)] if diff.gpu else [])
        for what, figure in measured:
            said = _sentence(what, figure, limits.slowdown)
            if figure.ratio <= 1 + limits.slowdown:
                passed.append(said)
            elif figure.verdict == "slower" and not diff.doubt:
                failed.append(said)
                slower = True
            else:
                unclear.append(f"{said[:-1]}, which may be noise. {diff.doubt or diff.smallest}")
    larger = False
    if limits.memory is not None:
        for what, (a, b) in (("Peak memory", diff.peak), ("Memory allocated per step", diff.alloc)):
            grown = b > a * (1 + limits.memory)
            (failed if grown else passed).append(_grown(what, a, b, limits.memory))
            larger |= grown
    paths = [
        change
        for change in diff.changes
        if (slower and change.delta_ns > 0 and (change.time.verdict == "slower" or change.status == "added"))
        or (larger and change.alloc_bytes[1] > change.alloc_bytes[0] * (1 + (limits.memory or 0)))
    ][:_NAMED]
    if failed:
        return Verdict(FAILED, (*failed, *unclear, *passed), tuple(paths))
    return Verdict(UNCLEAR if unclear else PASSED, (*unclear, *passed))


def _sentence(what: str, figure: Figure, limit: float) -> str:
    change = 100 * (figure.ratio - 1)
    low, high = 100 * (figure.low - 1), 100 * (figure.high - 1)
    more = "more" if change >= 0 else "less"
    between = f"{low:+.1f} to {high:+.1f} %, limit +{100 * limit:g} %"
    return f"{what} takes {abs(change):.1f} % {more} time (interval {between})."


def _grown(what: str, a: float, b: float, limit: float) -> str:
    change = f"{100 * (b / a - 1):+.1f} %" if a else "from nothing" if b else "+0.0 %"
    return f"{what} changed by {change}, from {a:,.0f} to {b:,.0f} bytes (limit +{100 * limit:g} %)."
