"""Part of `redundant_work`: text is generated without a cache of keys and values, so that every new token computes the
whole sequence before it again."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np

from leadline.analysis.rules.base import Case, Finding, Severity
from leadline.analysis.rules.by_shape import shapes_of
from leadline.schema import FrameKind
from leadline.units import percent

_LENGTHS = 8
"""One after the other, called equally often: sequences that become longer by one with each call."""
_ALIKE = 0.02
_WITH_CACHE = 0.2
"""Of all calls with one token: then it is the others that are few."""
_GENERATION = r"/transformers/generation/"
_PARTS = (0.3, 0.75, 0.95)


def prefix_again(case: Case, rule: str, learn_more: str, least: float) -> list[Finding]:
    """At most one finding: the model whose sequences grow. Needs shapes."""
    lengths_of: defaultdict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    rows_of: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    called = case.operators("aten::embedding") & ~case.in_phase("backward")
    for row in np.flatnonzero(called).tolist():
        shapes = shapes_of(case, row)
        if len(shapes) > 1 and shapes[0] and shapes[1]:
            key = (_model(case, row), shapes[0][0])
            lengths_of[key][shapes[1][-1]] += int(case.calls[row])
            rows_of[key].append(row)
    generating = case.in_files(_GENERATION)
    backward = case.named(FrameKind.PHASE, "backward")
    for (model, table), lengths in lengths_of.items():
        found = rows_of[model, table]
        if model < 0 or not _grows(lengths, told=bool(generating[found].all())):
            continue
        if backward[case.below_row(model)].any():
            continue  # batches of training
        ns = int(case.cost_with_all_below[model])
        share = ns / max(case.cost_of_all, 1)
        if share < least:
            continue
        return [
            Finding(
                rule,
                Severity.WARNING,
                f"Each new token computes the whole sequence again, {percent(share)} of {case.cost_name}",
                case.gain_of(np.array([model]), ns, _PARTS, "estimate: one position in place of all, with a cache"),
                (model, *found[:19]),
                case.lines([model]),
                (f"sequences of {min(lengths):,} to {max(lengths):,} tokens, each called about equally often",),
                "Keep the keys and values of earlier tokens: use_cache=True in generate() (its default), or hand "
                "past_key_values on in a loop of your own, and give the model the new token only.",
                learn_more,
                share,
            )
        ]
    return []


def _model(case: Case, row: int) -> int:
    """The outermost module around a node; -1 for none."""
    path: list[int] = case.tree.path_rows(row)
    return next((at for at in path if case.tree.kinds[at] == int(FrameKind.MODULE)), -1)


def _grows(lengths: Counter[int], *, told: bool) -> bool:
    """`told`: a library generates text here, so that different lengths need no further proof."""
    if lengths[1] > _WITH_CACHE * lengths.total():
        return False
    if told:
        return len(lengths) >= _LENGTHS
    longest = run = 1
    for before, now in pairwise(sorted(lengths)):
        fewest, most = sorted((lengths[before], lengths[now]))
        run = run + 1 if now == before + 1 and fewest >= 2 and most - fewest <= _ALIKE * most else 1
        longest = max(longest, run)
    return longest >= _LENGTHS
