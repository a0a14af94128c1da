"""What the rules on servers share."""

from __future__ import annotations

from leadline.analysis.rules.base import CannotTell, Case
from leadline.engines import Engine, engines_of, together


def engine_of(case: Case) -> Engine:
    """What the engines of a server did, added up; raises CannotTell where none served."""
    engine = together(engines_of(case.profile.meta))
    if engine is None:
        raise CannotTell("no engine serves in this profile")
    return engine
