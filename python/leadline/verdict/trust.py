"""How far to trust a verdict: what was lost, what measuring cost, what nothing explains. One line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from leadline.profiles import Profile
from leadline.profiles.archive import printable
from leadline.profiles.overhead import overhead
from leadline.schema import LOSSES, LossKind
from leadline.units import counted, percent
from leadline.verdict.account import FEW_SAMPLES
from leadline.verdict.model import Account

_LONGEST = 160
_DISTURBED = "other programs used its cores (times are longer than on an idle machine)"


def trust(
    profile: Profile, account: Account | None, samples: int, failed: Sequence[str] = (), *, disturbed: bool = False
) -> str:
    """`nothing lost, overhead about 0.8 %, 3 % of the step is not explained`. `failed`: errors of ours; `disturbed`: by
    other programs."""
    said = [_lost(profile), *([_DISTURBED] if disturbed else []), *_cost(profile)]
    if account is not None:
        said.append(f"{percent(account.share('unexplained'))} of the {account.of} is not explained")
        if not samples and not account.lane("device"):
            said.append("Python was not sampled")
        elif 0 < samples < FEW_SAMPLES:
            said.append(f"Python has only {samples} samples")
        said += account.notes[:1]
    if failed:
        said.append(f"{counted(len(failed), 'fact')} could not be found out ({failed[0]}; please report it)")
    return ", ".join(said)


def _lost(profile: Profile) -> str:
    counts: Counter[LossKind] = Counter()
    for one in profile.losses:
        counts[one.kind] += one.count
    ended = counts.pop(LossKind.PROCESS_INCOMPLETE, 0)
    counts.pop(LossKind.PROVIDER_UNAVAILABLE, 0)
    said = _not_measured(profile)
    if total := counts.total():
        ((kind, _),) = counts.most_common(1)
        what = next((info.doc.partition(";")[0] for info in LOSSES if info.kind == kind), str(kind))
        said.append(f"{counted(total, 'measurement')} lost ({'' if len(counts) == 1 else 'most: '}{what})")
    if ended:
        said.append(f"the end of {ended:,} process{'es' if ended != 1 else ''} is missing")
    return ", ".join(said) or "nothing lost"


def _not_measured(profile: Profile) -> list[str]:
    """What was asked for and could not be measured, in the words of the part that should have."""
    details = [one.detail for one in profile.losses if one.kind == LossKind.PROVIDER_UNAVAILABLE and one.count]
    if not details:
        return []
    more = f" (and {len(details) - 1:,} more)" if len(details) > 1 else ""
    first = printable(re.split(r"[.;:] ", details[0].rstrip("."), maxsplit=1)[0], _LONGEST)
    if first[1:2].islower():  # no name in capitals
        first = first[0].lower() + first[1:]
    return [f"not measured: {first}{more}"]


def _cost(profile: Profile) -> list[str]:
    found = overhead(profile)
    if found is None:
        return []
    return [f"overhead {'' if found.measured else 'about '}{percent(found.share)}"]
