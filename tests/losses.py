"""What a profile lost, for tests that say it lost nothing."""

from __future__ import annotations

from leadline.profiles import Profile
from leadline.profiles.records import Loss
from leadline.schema import LossKind


def lost(profile: Profile) -> list[Loss]:
    """Without what a CUDA build of PyTorch is told where there is no GPU: that no GPU work was measured."""
    told = "no GPU work was measured"
    return [
        loss
        for loss in profile.losses
        if loss.count > 0 and not (loss.kind == LossKind.PROVIDER_UNAVAILABLE and told in loss.detail)
    ]
