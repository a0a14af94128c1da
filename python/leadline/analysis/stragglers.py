"""Ranks that hold the others up, each with what takes it longer; and what differs lawfully.

A rank's own time per step is cut into computation, data loading and the rest (Python, waits that are no communication,
idleness). Where it exceeds the fast quarter of its peers by more than a tenth of their own time, and by more than their
noise, and where its peers wait for it, the part with the largest excess is the cause. Computation that is longer
everywhere with the same number of calls is a slower processor or device; with more calls it is more work. When at least
three quarters of a machine's ranks are slow for one cause, the machine is named, not they. Fewer than four peers are
too few for quarters: then the fastest counts and a fifth is asked for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass
from leadline.analysis.ranks import RankView, rank_label
from leadline.profiles import Profile
from leadline.profiles.fold.state import Rank

Floats = NDArray[np.float64]

_EXCESS = 0.10
_EXCESS_OF_FEW = 0.20
_FEW = 4
_NOISES = 4.0
_OF_A_STEP = 0.02
_WAITED_FOR = 0.2
_FEWEST_STEPS = 10
"""Of fewer the first ones, in which ranks come to each other from their start-up, are too large a part."""
_OF_A_MACHINE = 0.75
_UNIFORM = 0.5
"""Phases that are slower by the same factor, within this share of the excess, are slower for one reason."""
_MORE_CALLS = 1.02
_LAWFUL = 1.05


@dataclass(frozen=True)
class Straggler:
    """`ranks`: rows of `RankView.ranks`; `host`: the machine where it is that; `cause`: one of computation, processor,
    more work, data loading, outside operators. Times are ns per step (in all, where no steps were seen)."""

    ranks: tuple[int, ...]
    host: str
    cause: str
    ratio: float
    """Its own time over that of the fast quarter of its peers."""
    excess_ns: float
    part_ns: float
    peers_part_ns: float
    peers: int
    waited_ns: float
    """How much longer its peers are in communication: what they lose to it."""
    phase: str
    """The phase with the largest excess; empty where none stands out."""


@dataclass(frozen=True)
class Lawful:
    """Roles whose work differs: own time of the busiest and of the least busy one, per step."""

    busiest: str
    least: str
    ratio: float


@dataclass(frozen=True)
class Imbalance:
    """`compared`: ranks that had peers to be compared with. `too_few_steps`: how many there were, where that is why
    nobody was compared."""

    stragglers: tuple[Straggler, ...]
    lawful: tuple[Lawful, ...]
    compared: int
    too_few_steps: int = 0


def imbalance(view: RankView) -> Imbalance:
    """Who is late and why. Pure."""
    if len(view.ranks) < 2:
        return Imbalance((), (), 0)
    parts = _parts(view)
    own = np.sum(list(parts.values()), axis=0)
    found: list[Straggler] = []
    compared = 0
    groups = view.peers()
    counted = view.count("steps")
    if counted.any() and int(np.median(counted)) < _FEWEST_STEPS:
        return Imbalance((), _lawful(groups, own), 0, int(np.median(counted)))
    for rows in groups.values():
        if len(rows) < 2:
            continue
        compared += len(rows)
        found += _of_peers(view, np.array(rows), parts, own)
    machines, left = _machines(view, found)
    ordered = sorted([*machines, *left], key=lambda one: (-one.excess_ns, one.ranks))
    return Imbalance(tuple(ordered), _lawful(groups, own), compared)


def late_ranks(profile: Profile, most: int = 8) -> list[Rank]:
    """The ranks that are named, those with the largest excess first; of a folded profile."""
    view = RankView(profile)
    rows = [row for one in imbalance(view).stragglers for row in one.ranks]
    return [view.ranks[row] for row in rows[:most]]


def _parts(view: RankView) -> dict[str, Floats]:
    """Own time per step and rank, in parts that add up."""
    steps = view.steps.astype(np.float64)
    on_device = [name for name in view.names if name.startswith("gpu_time ") and name != "gpu_time communication"]
    loading = view.column("time data loading") / steps
    if on_device and view.column("wall").any():
        compute = sum((view.column(name) for name in on_device), np.zeros(len(view.ranks))) / steps
        talk = np.maximum(view.column("gpu_time communication"), view.column("communication")) / steps
        rest = np.maximum(view.column("wall") / steps - compute - loading - talk, 0)
        return {"computation": compute, "data loading": loading, "outside operators": rest}
    talk = view.column("communication") / steps
    computing = [name for name in view.names if name.startswith("time ") and name != "time data loading"]
    compute = sum((view.column(name) for name in computing), np.zeros(len(view.ranks))) / steps
    rest = view.column("outside operators") / steps
    spans = view.column("steps")
    if (spans > 0).all():  # from step to step, so without what a short run takes to start
        each = spans / np.maximum(view.count("steps"), 1)
        rest = np.minimum(rest, np.maximum(each - compute - loading - talk, 0))
    return {"computation": compute, "data loading": loading, "outside operators": rest}


def late_of(own: Floats, talk: Floats, step: float | None = None) -> dict[int, tuple[float, float]]:
    """Of peers with these own times and times in communication, ns of one step: who is late, with how much longer it
    takes than the fast quarter, and how much longer its peers wait."""
    few = len(own) < _FEW
    reference = _fast(own, few)
    if reference <= 0:
        return {}
    fast = own[own <= np.median(own)]
    noise = 0.0 if few else float(fast.max() - fast.min()) / 2
    least = max((_EXCESS_OF_FEW if few else _EXCESS) * reference, _NOISES * noise)
    whole = float(np.median(own + talk)) if step is None else step
    found = {}
    for row in np.flatnonzero(own - reference > max(least, _OF_A_STEP * whole)).tolist():
        excess = float(own[row]) - reference
        waited = max(float(np.percentile(np.delete(talk, row), 75)) - float(talk[row]), 0.0)
        if not talk.any() or waited >= _WAITED_FOR * excess:  # else nobody waits for it
            found[row] = excess, waited
    return found


def _of_peers(view: RankView, rows: NDArray[np.int64], parts: dict[str, Floats], own: Floats) -> list[Straggler]:
    few = len(rows) < _FEW
    reference = _fast(own[rows], few)
    talk = np.maximum(view.column("communication"), view.column("gpu_time communication")) / view.steps
    step = float(np.median(view.column("wall")[rows] / view.steps[rows]))
    made = []
    for place, (excess, waited) in late_of(own[rows], talk[rows], step).items():
        row = int(rows[place])
        of_part = {name: float(values[row]) - _fast(values[rows], few) for name, values in parts.items()}
        part = max(of_part, key=lambda name: of_part[name])
        others = rows[rows != row]
        cause, phase = _computing(view, row, others, few) if part == "computation" else (part, "")
        made.append(
            Straggler(
                (row,),
                "",
                cause,
                float(own[row]) / reference,
                excess,
                float(parts[part][row]),
                _fast(parts[part][rows], few),
                len(rows) - 1,
                waited,
                phase,
            )
        )
    return made


def _fast(values: Floats, few: bool) -> float:
    return float(values.min() if few else np.percentile(values, 25, method="lower"))


def _computing(view: RankView, row: int, others: NDArray[np.int64], few: bool) -> tuple[str, str]:
    """Why computation takes longer: more calls, everything slower, or one phase."""
    prefix = "gpu_time " if any(name.startswith("gpu_time ") for name in view.names) else "time "
    names = [
        name
        for name in view.names
        if name.startswith(prefix) and name not in ("time data loading", "gpu_time communication")
    ]
    steps = view.steps
    calls = sum((view.count(name) for name in names), np.zeros(len(view.ranks))) / steps
    if calls[row] > _MORE_CALLS * float(np.median(calls[others])):
        return "more work", ""
    times = {name: view.column(name) / steps for name in names}
    usual = {name: _fast(one[others], few) for name, one in times.items()}
    excess = {name: float(times[name][row]) - usual[name] for name in names}
    whole, base = sum(excess.values()), sum(usual.values())
    largest = max(excess, key=lambda name: excess[name])
    factor = whole / base if base else 0.0
    weighty = [name for name in names if usual[name] > 0.05 * base]
    even = all(abs(excess[name] / usual[name] - factor) <= _UNIFORM * factor for name in weighty)
    if even and len(weighty) > 1:
        return "processor", ""
    return "computation", largest.removeprefix(prefix)


def _machines(view: RankView, found: list[Straggler]) -> tuple[list[Straggler], list[Straggler]]:
    """Stragglers that are a machine as a whole, and those that are not."""
    on_host: dict[str, int] = {}
    for rank in view.ranks:
        on_host[rank.host] = on_host.get(rank.host, 0) + 1
    together: dict[tuple[str, str], list[Straggler]] = {}
    for one in found:
        together.setdefault((view.ranks[one.ranks[0]].host, one.cause), []).append(one)
    machines, left = [], []
    for (host, cause), several in sorted(together.items()):
        if not host or len(several) < 2 or len(several) < _OF_A_MACHINE * on_host[host] or len(on_host) < 2:
            left += several
            continue
        middle = sorted(several, key=lambda one: one.ratio)[len(several) // 2]
        machines.append(
            Straggler(
                tuple(sorted(one.ranks[0] for one in several)),
                host,
                cause,
                middle.ratio,
                max(one.excess_ns for one in several),
                middle.part_ns,
                middle.peers_part_ns,
                middle.peers,
                max(one.waited_ns for one in several),
                middle.phase,
            )
        )
    return machines, left


def _lawful(groups: dict[tuple[tuple[str, int], ...], list[int]], own: Floats) -> tuple[Lawful, ...]:
    if len(groups) < 2:
        return ()
    usual = {role: float(np.percentile(own[rows], 25, method="lower")) for role, rows in groups.items()}
    most, least = max(usual, key=lambda role: usual[role]), min(usual, key=lambda role: usual[role])
    if usual[least] <= 0 or usual[most] < _LAWFUL * usual[least]:
        return ()
    return (Lawful(role_text(most), role_text(least), usual[most] / usual[least]),)


def role_text(role: tuple[tuple[str, int], ...]) -> str:
    """`pp 0, ep 1`."""
    return ", ".join(f"{name} {place}" for name, place in role) or "ranks without a role"


def who(view: RankView, one: Straggler) -> str:
    """`rank 3 (node07)`, or `machine node07 (ranks 8-15)`."""
    from leadline.analysis.ranks import ranges

    if one.host:
        return f"machine {one.host} (ranks {ranges([view.ranks[row].rank for row in one.ranks])})"
    rank = view.ranks[one.ranks[0]]
    return f"{rank_label(rank)} ({rank.host})" if rank.host and rank.rank >= 0 else rank_label(rank)
