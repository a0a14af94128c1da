"""`imbalance`: one rank works longer than the others, who wait for it."""

from __future__ import annotations

import numpy as np

from leadline.analysis.columns import at_rows, group_sums
from leadline.analysis.ranks import RankView, is_folded_profile
from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.collectives import collectives
from leadline.analysis.rules.communication import ALIKE, by_rank
from leadline.analysis.rules.late_line import late_line
from leadline.analysis.stragglers import imbalance, who
from leadline.schema import MetricKind
from leadline.units import duration, percent

_COSTS = 0.02
"""Of the step: what the difference costs must be worth a warning."""


class Imbalance(Rule):
    name = "imbalance"
    asks = "Does one rank work longer than the others?"
    options = (Option("share", 10, "%", "more than the mean; a few percent are noise of machines"),)

    def check(self, case: Case, values: Values) -> list[Finding]:
        if is_folded_profile(case.profile):
            return self._folded(case)
        ranks = [one for one in case.profile.processes if one.rank >= 0]
        if len(ranks) < 2:
            raise CannotTell("fewer than two ranks were measured")
        steps = case.loop.steps
        tree = case.tree
        metric = "gpu_time" if case.has_device else "time"
        time = np.where(case.below(collectives(case)), 0, tree.exclusive(metric).sum)
        place = np.full(len(tree), -1, np.int64)
        for number, one in enumerate(ranks):
            place[one.node.row] = number
        rank_of = at_rows(place, case.analysis.scopes.process)
        own = group_sums(rank_of, time, len(ranks))
        mean, most = float(own.mean()), int(np.argmax(own))
        excess = own[most] / mean - 1 if mean else 0.0
        ran = _ran(case, [one.row for one in ranks])
        if not case.has_device and ran.all() and ran[most] / ran.mean() - 1 < values["share"]:
            # what it does longer is waiting, inside of an operator, for a rank that comes late
            return self._late(case, values)
        if excess < values["share"]:
            return []
        groups = case.by_line(rank_of == most, np.where(rank_of == most, time, 0))
        costs = (own[most] - mean) / max(case.total_ns, 1)
        return [
            Finding(
                self.name,
                Severity.WARNING if costs >= _COSTS else Severity.INFO,
                f"Rank {ranks[most].rank} works {percent(excess)} longer than the mean",
                case.gain((own[most] - mean), (0, 0.7, 1), "bound: the slowest rank as fast as the mean"),
                tuple(group.row for group in groups[:5]),
                case.lines([group.row for group in groups]),
                (
                    f"{duration(own[most] / steps)} a step outside communication, {duration(mean / steps)} on average, "
                    f"{duration(own.min() / steps)} at least",
                ),
                "Give each rank the same amount of work: equal shares of data, sequences of similar length together.",
                self.learn_more,
                min(1.0, excess),
            )
        ]

    def _late(self, case: Case, values: Values) -> list[Finding]:
        """The rank that waits least for the others is the one that they wait for."""
        spent = by_rank(case)
        least, most = min(spent, key=lambda rank: spent[rank]), max(spent, key=lambda rank: spent[rank])
        waits = spent[most] - spent[least]
        if spent[least] > ALIKE * spent[most] or waits < values["share"] * case.loop.step_ns:
            return []
        line = late_line(case, least)
        more = "" if line is None else f"this line takes {duration(line.excess_ns)} a step longer on rank {least}"
        return [
            Finding(
                self.name,
                Severity.WARNING,
                f"Rank {least} is late: the others wait {duration(waits)} a step for it",
                case.gain(waits * case.loop.steps, (0, 0.7, 1), "bound: as early as the others"),
                (case.loop.root,) if line is None else (line.row,),
                () if line is None else case.lines([line.row]),
                (
                    *([more] if more else []),
                    f"it spends {duration(spent[least])} a step in communication, rank {most} {duration(spent[most])}; "
                    "operators take equally long on both",
                ),
                "Check what only that rank does there: loading data, sleeping, files, logging, other processes on its "
                "machine.",
                self.learn_more,
                min(1.0, waits / max(case.loop.step_ns, 1)),
            )
        ]

    def _folded(self, case: Case) -> list[Finding]:
        """Of a merged job: the ranks that hold the others up, as the report names them, compared with their peers."""
        view = RankView(case.profile)
        found = imbalance(view)
        if not found.compared:
            raise CannotTell("there are no ranks that could be compared, or too few steps")
        return [
            Finding(
                self.name,
                Severity.WARNING,
                f"{name[:1].upper()}{name[1:]} works {percent(one.ratio - 1)} longer than its peers ({one.cause})",
                case.gain(one.excess_ns * case.loop.steps, (0, 0.7, 1), "bound: as fast as the fast quarter"),
                tuple(lines[:20]),
                case.lines(lines),
                (
                    f"{duration(one.part_ns)} a step in {_PARTS.get(one.cause, one.cause)}, its peers "
                    f"{duration(one.peers_part_ns)}; they wait {duration(one.waited_ns)} longer than it does",
                ),
                _REMEDIES[one.cause],
                self.learn_more,
                min(1.0, one.ratio - 1),
            )
            for one in found.stragglers
            for name, lines in [(who(view, one), _where(case, view.rows[one.ranks[0]]))]
        ]


def _ran(case: Case, processes: list[int]) -> np.ndarray:
    """CPU time of the threads of each of these processes; 0 where the file does not say."""
    return np.array(
        [sum(one.cpu_ns for one in case.profile.threads if one.process == row) for row in processes], np.float64
    )


def _where(case: Case, rank: int) -> list[int]:
    """Operators of the lines on which this rank (a row of the table) took longest and longer than the others, the
    largest excess first."""
    table = case.profile.tables["rank_stats"]
    mine = (table["metric"] == int(MetricKind.TIME)) & (table["max_rank"] == rank)
    nodes = table["node"][mine].astype(np.int64)
    excess = np.zeros(len(case.tree), np.int64)
    excess[nodes] = table["max"][mine] - table["min"][mine]
    outer = case.analysis.scopes.outer == np.arange(len(case.tree))
    talk = case.below(collectives(case)) | case.in_phase("on another thread")
    return [group.row for group in case.by_line(outer & ~talk & case.loop.inside, excess)]


_PARTS = {"processor": "computation", "more work": "computation"}
_REMEDIES = {
    "processor": "Compare clock rates, temperatures and other load of that machine with its peers', or leave it out.",
    "more work": "Give each rank the same amount of work: equal shares of data, sequences of similar length together.",
    "computation": "Compare that phase on the rank with its peers: leadline diff of their files shows the lines.",
    "data loading": "Check where that rank's data is stored and how many workers load it.",
    "outside operators": "Check what only that rank does between operators: logging, checkpoints, other processes.",
}
