"""Whether a window holds a whole training step, or a part of one that promises nothing about the rest."""

from __future__ import annotations

import re

import numpy as np

from leadline.trace.tables import Kind
from leadline.whatif.build.draft import Draft
from leadline.whatif.kinds import PHASE_NAMES, Phase
from leadline.whatif.tables import PART_OF_STEP

_DROPS = re.compile(r"^aten::(native_dropout|bernoulli_)$")
"""What only training does; evaluation calls `dropout`, which then does nothing."""


def doubt_parts(draft: Draft, found_by: str) -> None:
    """Say so, and doubt every gain, where the window holds a part of a training step only."""
    seen = set(np.unique(draft["phase"]).tolist())
    # what repeats may be a part of a step whose gradients are added up, but then it goes forward and backward
    needed = (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)[: 2 if found_by == "repetition" else 3]
    lacking = [PHASE_NAMES[phase] for phase in needed if phase not in seen]
    if not lacking or found_by == "profiler":
        return
    if {int(Phase.BACKWARD), int(Phase.OPTIMIZER)} & seen:
        why, mend = f"no {' and no '.join(lacking)}", "record whole steps"
    elif found_by == "whole trace" and (sign := _training(draft, seen)):
        why = f"{sign}, but no backward pass and no weight update is in it"
        mend = "record whole steps, or inference with gradients off (torch.inference_mode)"
    else:
        return
    draft.facts[PART_OF_STEP] = True
    draft.warnings.append(
        f"the trace holds a part of a training step only ({why}): gains are those of this part, and every range "
        f"includes no gain; {mend}"
    )


def _training(draft: Draft, seen: set[int]) -> str:
    """What shows that a window without backward work is of training; empty for what may as well be inference."""
    trace = draft.trace
    if int(Phase.ZERO_GRAD) in seen:
        return "gradients are cleared"
    rows = trace.of_kind(Kind.OPERATOR)
    if any(_DROPS.match(trace.strings[name]) for name in np.unique(trace.events["name"][rows]).tolist()):
        return "values are dropped out"
    numbers = trace.events["sequence"][rows]
    numbers = numbers[numbers >= 0]
    # a number is taken for each node that autograd makes for the way back
    return "autograd noted what a backward pass needs" if np.unique(numbers).size > 1 else ""
