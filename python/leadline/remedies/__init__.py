"""Changes that `leadline try` makes to a program without an edit; see README.md."""

from __future__ import annotations

from leadline.remedies.base import NotApplied, Remedy, RemedyError
from leadline.remedies.trial import Trial

__all__ = ["NotApplied", "Remedy", "RemedyError", "Trial"]
