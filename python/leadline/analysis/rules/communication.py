"""`communication`: the step waits for other ranks."""

from __future__ import annotations

import numpy as np

from leadline.analysis.columns import subtree_sums
from leadline.analysis.ranks import RankView, is_folded_profile
from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.collectives import collectives
from leadline.analysis.rules.words import duration, percent, times

_ALIKE = 0.7
"""Ranks whose times in communication are nearer than that come to it at about the same time."""


class Communication(Rule):
    name = "communication"
    asks = "Does communication between ranks take a large part of the step?"
    options = (Option("share", 20, "%", "of the step; ten are usual for data-parallel training"),)

    def check(self, case: Case, values: Values) -> list[Finding]:
        talk = collectives(case) & case.loop.inside
        if not talk.any():
            raise CannotTell("no communication between ranks was measured")
        outer = case.first_of(talk)
        late, own = _late(case)
        made = []
        for group in case.by_line(outer, case.cost_with_all_below):
            share = group.value / max(case.cost_of_all, 1)
            if share < values["share"]:
                break
            calls = case.per_step(float(case.calls[group.rows].sum()))
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING,
                    f"Communication takes {percent(share)} of {case.cost_name}",
                    case.gain(group.value, (0, 0.4 * own, 1), "bound: all of it hidden, as if nothing were yet"),
                    tuple(group.rows[:20].tolist()),
                    case.lines([group.row]),
                    (f"{times(calls)} collectives, {duration(case.per_step(group.value))} a step", *late),
                    "Overlap it with the backward pass (DistributedDataParallel does; look at bucket_cap_mb), exchange "
                    "less often (no_sync while accumulating) or in lower precision.",
                    self.learn_more,
                    share,
                )
            )
        return made[:1]


def _late(case: Case) -> tuple[list[str], float]:
    """Who is waited for, and which part of the time in communication would be left without waiting: the rank that
    comes last waits least, so what it spends is the exchange itself."""
    spent = _by_rank(case)
    if len(spent) < 2:
        return [], 1.0
    least, most = min(spent, key=lambda rank: spent[rank]), max(spent, key=lambda rank: spent[rank])
    mean = sum(spent.values()) / len(spent)
    if spent[least] > _ALIKE * spent[most] or not mean:
        return [], 1.0
    said = (
        f"rank {least} spends {duration(spent[least])} a step in it and rank {most} {duration(spent[most])}: "
        f"the difference is waiting for rank {least}"
    )
    return [said], spent[least] / mean


def _by_rank(case: Case) -> dict[int, float]:
    """Time a step that each rank spends in communication."""
    if is_folded_profile(case.profile):
        view = RankView(case.profile)
        talk = np.maximum(view.column("communication"), view.column("gpu_time communication")) / view.steps
        return {one.rank: float(ns) for one, ns in zip(view.ranks, talk, strict=True)}
    tree = case.tree
    time = np.where(collectives(case), subtree_sums(tree.shape, tree.exclusive("time").sum), 0)
    outer = case.first_of(collectives(case))
    ranks = {one.node.row: one.rank for one in case.profile.processes if one.rank >= 0}
    process = case.analysis.scopes.process
    return {rank: float(time[outer & (process == node)].sum()) / case.loop.steps for node, rank in ranks.items()}
