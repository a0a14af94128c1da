"""The one definition of a step: `steps_of(profile)`, `steps_of_events(trace)`; see README.md."""

from __future__ import annotations

from leadline.steps.model import Found, NoSteps, RankSteps, Step, Steps

__all__ = ["Found", "NoSteps", "RankSteps", "Step", "Steps"]
