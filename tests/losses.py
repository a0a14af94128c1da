"""What a profile lost, for tests that say it lost nothing."""

from __future__ import annotations

from collections import Counter

from leadline.profiles import Profile
from leadline.profiles.records import Loss
from leadline.schema import LossKind


def lost(profile: Profile) -> list[Loss]:
    """Without what a CUDA build of PyTorch is told where there is no GPU: that no GPU work was measured; and without
    CPU time of threads that lived too short for a sample, which CPU samples count in every run."""
    told = "no GPU work was measured"
    return [
        loss
        for loss in profile.losses
        if loss.count > 0
        and loss.kind != LossKind.SAMPLES_MISSING
        and not (loss.kind == LossKind.PROVIDER_UNAVAILABLE and told in loss.detail)
    ]


def counts_by_kind(profile: Profile) -> dict[str, int]:
    """How often each kind was counted, whatever the sentences."""
    counts: Counter[str] = Counter()
    for loss in profile.losses:
        if loss.count > 0:
            counts[str(loss.kind)] += loss.count
    return dict(counts)
