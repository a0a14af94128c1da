"""How far to trust a verdict: what was lost, what measuring cost, what nothing explains. One line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from leadline.profiles import Profile
from leadline.schema import LOSSES, LossKind
from leadline.units import counted, percent
from leadline.verdict.account import FEW_SAMPLES
from leadline.verdict.model import Account


def trust(profile: Profile, account: Account | None, samples: int, failed: Sequence[str] = ()) -> str:
    """`nothing lost, overhead 0.8 %, 3 % of the step is not explained`. `failed`: errors of ours."""
    said = [_lost(profile), *_cost(profile)]
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
    said = []
    if total := counts.total():
        ((kind, _),) = counts.most_common(1)
        what = next((info.doc.partition(";")[0] for info in LOSSES if info.kind == kind), str(kind))
        said.append(f"{counted(total, 'measurement')} lost ({'' if len(counts) == 1 else 'most: '}{what})")
    if ended:
        said.append(f"the end of {ended:,} process{'es' if ended != 1 else ''} is missing")
    return ", ".join(said) or "nothing lost"


def _cost(profile: Profile) -> list[str]:
    stated: Any = profile.meta.get("cost")
    percent_of = stated.get("percent") if isinstance(stated, dict) else None
    if not isinstance(percent_of, int | float):
        return []
    return [f"overhead {percent(percent_of / 100)}"]
