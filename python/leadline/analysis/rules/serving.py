"""What the rules on servers share."""

from __future__ import annotations

import numpy as np

from leadline.analysis.rules.base import CannotTell, Case
from leadline.engines import Engine, engines_of, together
from leadline.units import duration

TEXT_PHASES = ("tokenising", "detokenising")


def engine_of(case: Case) -> Engine:
    """What the engines of a server did, added up; raises CannotTell where none served."""
    engine = together(engines_of(case.profile.meta))
    if engine is None:
        raise CannotTell("no engine serves in this profile")
    return engine


def words_take(case: Case, thread: int) -> list[str]:
    """What turning text into tokens and back takes of a thread, whose row that is; nothing where it is nothing."""
    time = np.maximum(case.tree.exclusive("time").sum, 0)
    mine = case.analysis.scopes.thread == thread
    took = {name: int(time[case.in_phase(name) & mine].sum()) for name in TEXT_PHASES}
    return [f"{name} takes {duration(ns)} of it" for name, ns in took.items() if ns]
