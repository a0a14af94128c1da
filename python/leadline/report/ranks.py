"""The ranks of a folded profile as a report shows them: spreads, who is late and why, what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leadline._dataclass import dataclass, replace
from leadline.analysis.arrival import arrivals
from leadline.analysis.ranks import NOT_PARTS, RankView, is_folded_profile, ranges, rank_label, role_of
from leadline.analysis.ranks import Spread as AnalysisSpread
from leadline.analysis.stragglers import Imbalance, Straggler, imbalance, who
from leadline.profiles import Profile
from leadline.profiles.fold.alone import ranks_alone
from leadline.units import duration

if TYPE_CHECKING:
    from leadline.report.model import HotPath

MOST_IN_MATRIX = 4096
"""Ranks whose values the page and JSON list one by one; of more, the spreads and the stragglers tell."""


@dataclass(frozen=True)
class Spread:
    """One quantity over ranks. `name` as in the table rank_values; `unit` is ns, bytes or 1."""

    name: str
    unit: str
    ranks: int
    mean: float
    std: float
    min: int
    min_rank: str
    max: int
    max_rank: str


@dataclass(frozen=True)
class Late:
    """Ranks that hold the others up. Times are ns per step. `sentence`: who, why, by how much, in words."""

    who: str
    ranks: tuple[int, ...]
    host: str
    cause: str
    phase: str
    ratio: float
    excess_ns: int
    waited_ns: int
    peers: int
    sentence: str


@dataclass(frozen=True)
class RankRow:
    """One rank's values, in the order of `Ranks.names`."""

    rank: int
    host: str
    role: dict[str, int]
    status: str
    values: tuple[int, ...]


@dataclass(frozen=True)
class Ranks:
    """`count` ranks were read on `hosts` machines; `missing` is a text such as `3, 8-11`; `arrival`: who did not come
    to a collective. `names` and `rows` are the matrix of ranks and quantities, without rows where there are more than
    MOST_IN_MATRIX ranks."""

    by: str
    count: int
    world_size: int
    hosts: int
    missing: str
    partial: str
    steps: int
    spreads: tuple[Spread, ...]
    late: tuple[Late, ...]
    lawful: tuple[str, ...]
    compared: int
    arrival: tuple[str, ...]
    names: tuple[str, ...]
    rows: tuple[RankRow, ...]
    alone: tuple[int, ...] = ()
    """Ranks that the file holds by themselves, too."""


_STATUS = ("whole", "last segment", "missing")


def ranks_of(profile: Profile) -> Ranks | None:
    """None for a profile whose ranks were not folded."""
    if not is_folded_profile(profile):
        return None
    view = RankView(profile)
    found = imbalance(view)
    fold = profile.meta.get("fold")
    about = fold if isinstance(fold, dict) else {}
    world = about.get("world_size")
    return Ranks(
        by=str(about.get("by") or ""),
        count=len(view.ranks),
        world_size=world if isinstance(world, int) and world > 0 else len(view.all),
        hosts=len(view.hosts),
        missing=ranges(view.missing),
        partial=ranges(view.partial),
        steps=max((rank.steps_ended for rank in view.ranks), default=0),
        spreads=tuple(_spread(view, one) for one in view.spreads()),
        late=tuple(_late(view, one) for one in found.stragglers),
        lawful=_lawful(found),
        compared=found.compared,
        arrival=arrivals(view),
        names=tuple(view.names),
        rows=_rows(view),
        alone=tuple(one.rank for one in ranks_alone(profile)),
    )


def with_spreads(profile: Profile, paths: Sequence[HotPath], metric: str) -> tuple[HotPath, ...]:
    """Paths that say how far ranks are apart at their nodes; the same paths where there are no ranks."""
    if not is_folded_profile(profile):
        return tuple(paths)
    view = RankView(profile)
    made = []
    for path in paths:
        found = view.of_node(path.node, metric)
        made.append(path if found is None else replace(path, ranks=_spread(view, found)))
    return tuple(made)


def unit_of(name: str) -> str:
    """The unit of a quantity."""
    return "bytes" if name == "peak" or name.endswith("_bytes") else "ns"


def _spread(view: RankView, one: AnalysisSpread) -> Spread:
    return Spread(
        one.name,
        unit_of(one.name),
        one.ranks,
        one.mean,
        one.std,
        one.least,
        rank_label(view.all[one.least_rank]),
        one.most,
        rank_label(view.all[one.most_rank]),
    )


def _rows(view: RankView) -> tuple[RankRow, ...]:
    if len(view.ranks) > MOST_IN_MATRIX:
        return ()
    values = view.values.tolist()
    return tuple(
        RankRow(rank.rank, rank.host, role_of(rank), _STATUS[min(rank.status, 2)], tuple(row))
        for rank, row in zip(view.ranks, values, strict=True)
    )


def _lawful(found: Imbalance) -> tuple[str, ...]:
    few = found.too_few_steps
    said = (f"{few} steps are too few to say which rank is late.",) if few else ()
    return said + tuple(
        f"{one.busiest} works {one.ratio:.2f} times as long as {one.least}: their work differs by role, and no rank is "
        "at fault."
        for one in found.lawful
    )


def _late(view: RankView, one: Straggler) -> Late:
    name = who(view, one)
    return Late(
        who=name,
        ranks=tuple(view.ranks[row].rank for row in one.ranks),
        host=one.host,
        cause=one.cause,
        phase=one.phase,
        ratio=one.ratio,
        excess_ns=int(one.excess_ns),
        waited_ns=int(one.waited_ns),
        peers=one.peers,
        sentence=_sentence(view, one, name),
    )


def _sentence(view: RankView, one: Straggler, name: str) -> str:
    per = " a step" if view.count("steps").any() else ""
    took, usual = duration(one.part_ns), duration(one.peers_part_ns)
    causes = {
        "processor": f"computes slower in every phase, with as many calls: {took}{per}, its peers {usual}; a slower "
        "processor or device, or one that is shared",
        "more work": f"does more work: {took}{per} of computation, its peers {usual}, with more calls",
        "computation": f"computes longer{f' in {one.phase}' if one.phase else ''}: {took}{per}, its peers {usual}",
        "data loading": f"waits for data longer: {took}{per}, its peers {usual}",
        "outside operators": f"is late outside of operators (Python, input, other waits): {took}{per}, its peers "
        f"{usual}",
    }
    waited = f"; they wait {duration(one.waited_ns)}{per} longer than it does" if one.waited_ns > 0 else ""
    few = f" (of {one.peers + 1} ranks only)" if one.peers < 3 else ""
    return f"{name} {causes[one.cause]}{waited}{few}."


def spread_name(name: str) -> str:
    """`forward`, `GPU forward`, `memory at the peak`: a quantity as a person reads it."""
    if name in NOT_PARTS:
        return {
            "wall": "wall time",
            "cpu": "CPU time",
            "peak": "memory at the peak",
            "steps": "between steps",
            "collectives": "issuing collectives",
        }[name]
    if name.startswith("gpu_time "):
        return f"GPU {name.removeprefix('gpu_time ')}"
    name = name.removeprefix("time ")
    return "operators outside phases" if name == "other" else name
