"""Which rank did not arrive: from how many collectives of each process group every rank has begun.

Collectives of a group are begun in one order on all of its ranks. Those who wait have begun the n-th; whoever has begun
fewer is behind, and waits perhaps itself, in another group. Following who waits for whom ends at ranks that are behind
and wait for nobody: those did not arrive. "No record" and "did not arrive" are two things: of a rank that left nothing
nobody knows. Messages from one rank to another are collectives of a pair; a send that has not ended may wait for
nobody, so it counts where nothing else explains why all stand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

from leadline._dataclass import dataclass
from leadline.analysis.ranks import ranges

_UNSEEN = -1
"""A member of a group that has no record of it."""
_MOST_INCOMPARABLE = 3
_PAIR = re.compile(r"from rank (\d+) to rank (\d+)(?:, (tag \d+|other tags))?")
_ANY = re.compile(r"from any rank to rank (\d+)")
Key = tuple[str, str, int]


@dataclass(frozen=True)
class GroupState:
    """A rank in one process group. `begun`: collectives so far; `name`, `elements`: of the last one (-1: unknown);
    `open`: whether it has not ended, or nobody has told. `key` is the same on all ranks of the group.
    `since`: how many had begun before the rank was measured, -1: unknown; `sure`: whether `begun` has them."""

    rank: int
    key: Key
    begun: int
    name: str
    elements: int
    open: bool
    since: int = 0
    sure: bool = True

    @property
    def group(self) -> str:
        """As a person calls it."""
        name, description, size = self.key
        if pair_of(self.key):
            return f"messages {description}"
        return f"{description or 'group ' + name} ({size} ranks)"


@dataclass(frozen=True)
class Verdict:
    """`roots`: ranks that did not arrive. `sentences`: what a person is told, the most important first."""

    roots: tuple[int, ...]
    sentences: tuple[str, ...]


def diagnose(
    states: Sequence[GroupState],
    ranks: Collection[int],
    silent: Collection[int] = (),
    attached: Collection[int] = (),
) -> Verdict:
    """`ranks`: all of the job; `silent`: those of which nothing is known; `attached`: those that may be inside a
    collective which they began before they were measured."""
    groups: dict[Key, list[GroupState]] = {}
    for one in states:
        groups.setdefault(one.key, []).append(one)
    waits: dict[int, set[int]] = {}
    sends: dict[int, set[int]] = {}
    takes_any = {int(found[1]) for one in states if (found := _ANY.fullmatch(one.key[1]))}
    behind_in: dict[int, tuple[GroupState, int]] = {}
    sentences: list[str] = []
    lost: list[str] = []
    incomparable: list[str] = []
    for key, members in sorted(groups.items(), key=lambda item: (-item[0][2], item[0])):
        there = {one.rank: one for one in members}
        top = max(one.begun for one in members)
        waiting = [one for one in members if one.begun == top and one.open]
        pair = pair_of(key)
        if pair and pair[1] in takes_any:
            continue  # nobody knows which message it has taken
        if not comparable(members):
            if waiting:
                incomparable.append(_incomparable(members))
            continue
        members_of = pair or (tuple(ranks) if key[2] == len(ranks) else ())
        unknown = sorted(({*silent, *attached} & set(members_of)) - set(there))
        unseen = sorted(set(members_of) - set(there) - set(unknown))
        behind = [one for one in members if one.begun < top]
        if not waiting:
            continue
        for one in behind:
            if one.rank not in behind_in:
                behind_in[one.rank] = one, top
        for rank in unseen:
            behind_in.setdefault(rank, (GroupState(rank, key, _unseen_begun(members), "", -1, False), top))
        late = {one.rank for one in behind} | set(unseen)
        for one in waiting:
            (sends if pair and one.rank == pair[0] else waits).setdefault(one.rank, set()).update(late)
        if not late:
            sentences += _mismatch(key, waiting, top)
            missing = key[2] - len(there)
            if missing > 0 and top:
                for one in waiting:
                    waits.setdefault(one.rank, set()).add(_UNSEEN)
                lost_ones = unknown or sorted(silent)
                who = f"ranks {ranges(lost_ones)} left no record" if lost_ones else f"{missing} left no record"
                lost.append(f"Of {members[0].group} {who}; whether they arrived is not known.")
    roots = sorted(rank for rank in behind_in if not waits.get(rank) and not sends.get(rank))
    if roots or not any(sends.get(rank) for rank in behind_in):
        for rank, others in sends.items():
            waits.setdefault(rank, set()).update(others)
    else:
        roots = sorted(rank for rank in behind_in if not waits.get(rank))
    arrived = [_behind(roots, behind_in, states)] if roots else []
    victims = sorted(rank for rank in behind_in if waits.get(rank))
    if victims and roots:
        arrived.append(f"{_ranks(victims)} {_are(victims)} late, too, but {_wait(victims)} for others.")
    if victims and not roots and not any(_UNSEEN in waits[rank] for rank in victims):
        arrived.append(
            f"{_ranks(victims)} wait for each other in groups that they entered in different order: none can continue."
        )
    if roots and not silent:
        lost = []  # whoever left no record there has been found
    return Verdict(tuple(roots), (*arrived, *sentences, *lost, *incomparable[:_MOST_INCOMPARABLE]))


def _unseen_begun(members: Sequence[GroupState]) -> int:
    return 0 if pair_of(members[0].key) else max(members[0].since, 0)


def comparable(members: Sequence[GroupState]) -> bool:
    """Whether counts of a group mean the same on these ranks: they began at one moment, or what torch counts itself
    says how many were not seen."""
    since = {one.since for one in members}
    if -1 in since:
        return len(members) == 1
    return len(since) == 1 or (not pair_of(members[0].key) and all(one.sure for one in members))


def _incomparable(members: Sequence[GroupState]) -> str:
    first = min(one.since for one in members)
    late = [one.rank for one in members if one.since == -1 or one.since > max(first, 0)] or [members[0].rank]
    has = "has" if len(late) == 1 else "have"
    return (
        f"No rank of {members[0].group} can be called late: {_ranks(late).lower()} {has} been measured from the "
        "middle of the job on, so counts of ranks cannot be compared."
    )


def _behind(roots: Sequence[int], behind_in: dict[int, tuple[GroupState, int]], states: Sequence[GroupState]) -> str:
    parts = []
    by_place: dict[tuple[Key, int, int], list[int]] = {}
    for rank in roots:
        one, top = behind_in[rank]
        by_place.setdefault((one.key, one.begun, top), []).append(rank)
    for (key, begun, top), ranks in sorted(by_place.items(), key=lambda item: item[1]):
        if pair := pair_of(key):
            parts.append(_no_message(pair, key, ranks[0], begun, top))
            continue
        there = [one for one in states if one.key == key and one.begun == top]
        what = Counter(one.name for one in there).most_common(1)[0][0]
        parts.append(
            f"{_ranks(ranks)} did not arrive at {what} no. {top} of {there[0].group}: "
            f"{'it has' if len(ranks) == 1 else 'they have'} begun {begun} collectives of it, and "
            f"{_ranks([one.rank for one in there]).lower()} {_wait([one.rank for one in there])} there."
        )
    return " ".join(parts)


def pair_of(key: Key) -> tuple[int, ...]:
    """Sender and receiver, where it is what goes from one rank to another (of one tag); else nothing."""
    found = _PAIR.fullmatch(key[1]) if key[2] == 2 else None
    return (int(found[1]), int(found[2])) if found else ()


def _no_message(pair: tuple[int, ...], key: Key, late: int, begun: int, top: int) -> str:
    sender, receiver = pair
    found = _PAIR.fullmatch(key[1])
    tag = f" with {found[3]}" if found and found[3] else ""
    did, other, does = ("send", receiver, "waits for it") if late == sender else ("receive", sender, "has begun it")
    to = f"to rank {receiver}" if late == sender else f"from rank {sender}"
    return f"Rank {late} did not {did} message no. {top}{tag} {to}: it has begun {begun}, and rank {other} {does}."


def _mismatch(key: Key, waiting: Sequence[GroupState], top: int) -> list[str]:
    """All have arrived: do they mean the same?"""
    both = "a message" if pair_of(key) else ""
    kinds = Counter((both or one.name, one.elements) for one in waiting)
    if len(kinds) < 2:
        if len(waiting) == key[2] > 1:
            name = both or waiting[0].name
            return [
                f"All ranks of {waiting[0].group} are in {name} no. {top}: the network, or a device, does not answer."
            ]
        return []
    usual = kinds.most_common(1)[0][0]
    others: dict[tuple[str, int], list[int]] = {}
    for one in waiting:
        if (both or one.name, one.elements) != usual:
            others.setdefault((both or one.name, one.elements), []).append(one.rank)
    told = "; ".join(f"{_ranks(ranks)} called {_call(kind)}" for kind, ranks in sorted(others.items()))
    return [f"Collective no. {top} of {waiting[0].group} differs between ranks: {told}, the others {_call(usual)}."]


def _call(kind: tuple[str, int]) -> str:
    name, elements = kind
    return f"{name} of {elements} elements" if elements >= 0 else name


def _ranks(ranks: Sequence[int]) -> str:
    return f"Rank {ranks[0]}" if len(ranks) == 1 else f"Ranks {ranges(sorted(ranks))}"


def _are(ranks: Sequence[int]) -> str:
    return "is" if len(ranks) == 1 else "are"


def _wait(ranks: Sequence[int]) -> str:
    return "waits" if len(ranks) == 1 else "wait"
