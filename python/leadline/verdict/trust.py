"""How far to trust a verdict: what was lost, what measuring cost, what nothing explains. One line."""

from __future__ import annotations

from typing import Any

from leadline.profiles import Profile
from leadline.schema import LossKind
from leadline.units import percent
from leadline.verdict.account import FEW_SAMPLES
from leadline.verdict.model import Account


def trust(profile: Profile, account: Account | None, samples: int) -> str:
    """`nothing lost, overhead 0.8 %, 3 % of the step is not explained`."""
    said = [_lost(profile), *_cost(profile)]
    if account is not None:
        said.append(f"{percent(account.share('unexplained'))} of the {account.of} is not explained")
        if not samples and not account.lane("device"):
            said.append("Python was not sampled")
        elif 0 < samples < FEW_SAMPLES:
            said.append(f"Python has only {samples} samples")
        said += account.notes[:1]
    return ", ".join(said)


def _lost(profile: Profile) -> str:
    ended = sum(one.count for one in profile.losses if one.kind == LossKind.PROCESS_INCOMPLETE)
    total = sum(one.count for one in profile.losses) - ended
    said = [f"{total:,} measurements lost"] if total else []
    if ended:
        said.append(f"the end of {ended:,} process{'es' if ended != 1 else ''} is missing")
    return ", ".join(said) or "nothing lost"


def _cost(profile: Profile) -> list[str]:
    stated: Any = profile.meta.get("cost")
    percent_of = stated.get("percent") if isinstance(stated, dict) else None
    if not isinstance(percent_of, int | float):
        return []
    return [f"overhead {percent(percent_of / 100)}"]
