"""`data_loading`: the step waits for its batch."""

from __future__ import annotations

import numpy as np

from leadline.analysis.columns import Mask
from leadline.analysis.functions import METRIC
from leadline.analysis.origin import Origin, origin
from leadline.analysis.rules.base import CannotTell, Case, Finding, Line, Option, Rule, Severity, Values
from leadline.analysis.rules.habits import habits_listed
from leadline.analysis.rules.processes import cpus as count_cpus
from leadline.analysis.rules.processes import started
from leadline.analysis.rules.processes import workers as count_workers
from leadline.analysis.rules.words import duration, percent
from leadline.analysis.sampled import SampledFunction, names_of
from leadline.schema import FrameKind


class DataLoading(Rule):
    name = "data_loading"
    asks = "Does the training loop wait for its batches?"
    options = (
        Option("share", 20, "%", "below that a loader with a tiny model looks the same when all is well"),
        Option("info", 10, "%", "a tenth of the step is worth knowing"),
        Option("restarts", 3, "1", "starts per worker; two passes, one to train and one to evaluate, start each twice"),
        Option("mean", 50_000, "ns", "a batch that arrives faster than this cannot come much faster"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        return self._waiting(case, values) + self._restarted(case, values)

    def _restarted(self, case: Case, values: Values) -> list[Finding]:
        """Workers that are started anew for every pass over the data."""
        loading = case.named(FrameKind.PHASE, "data loading")
        at_once, all_of = count_workers(case), len(started(case))
        rows = np.flatnonzero(loading & (case.calls > 0))
        if not at_once or all_of < values["restarts"] * at_once or not len(rows):
            return []
        row = int(rows[np.argmax(case.calls[rows])])
        detail = str(case.tree.node(row).detail.get("loader", ""))
        if "MultiProcessing" not in detail:
            return []
        between = case.between_ns
        return [
            Finding(
                self.name,
                Severity.INFO,
                f"Loader workers were started {all_of} times, {at_once} at once",
                case.gain_sums(
                    (0, 0.3 * between, between), "bound: all time of the steps that is in no operator or wait"
                ),
                (row,),
                case.lines([row]),
                ("a process starts by importing the program, and its first batches are waited for",),
                "Keep them from one pass over the data to the next: DataLoader(persistent_workers=True).",
                self.learn_more,
                0.05,
            )
        ]

    def _waiting(self, case: Case, values: Values) -> list[Finding]:
        loop = case.loop
        loading = case.named(FrameKind.PHASE, "data loading") & loop.inside
        if not loading.any():
            raise CannotTell("no DataLoader was seen in the loop")
        outer = case.first_of(loading)
        spent = case.inclusive_time
        ns = int(spent[outer].sum())
        share = case.share(ns)
        of_tf = case.matching(FrameKind.OPERATOR, _OF_TF) & case.below(loading)
        batches = int(case.calls[outer].sum()) or int(case.calls[of_tf].sum())
        if share <= values["info"] or ns < values["mean"] * max(batches, 1):
            return []
        row = int(np.flatnonzero(outer)[np.argmax(spent[outer])])
        detail = case.tree.node(row).detail
        workers = count_workers(case) if "MultiProcessing" in str(detail.get("loader", "")) else 0
        evidence = [f"{duration(ns / max(batches, 1))} a batch, {batches:,} batches"]
        work = case.by_line(case.below(loading) & ~loading, case.time)
        lines = case.lines([row, *(group.row for group in work[:2])])
        cpus = count_cpus(case)
        evidence += _beside(case, loading, outer)
        if workers:
            evidence.append(f"{workers} worker processes on {cpus} CPUs" if cpus else f"{workers} worker processes")
        elif not of_tf.any():
            evidence.append("batches are made in the training process (num_workers=0), which waits meanwhile")
            if work:
                first = case.line(work[0].row)
                where = f"{first.short}:{first.line}" if first else ""
                evidence.append(f"{percent(work[0].value / max(ns, 1))} of it in operators at {where}")
            makers, said = _makers(case)
            lines = (*lines, *makers)[:4]
            evidence += said
        sampled = case.sampled(case.in_phase("data loading"))  # of worker processes too
        if sampled:
            lines = case.lines([row, *(one.row for one in sampled)])
            evidence += [_sampled(case, one) for one in sampled[:2]]
        return [
            Finding(
                self.name,
                Severity.WARNING if share >= values["share"] else Severity.INFO,
                f"The loop waits for data {percent(share)} of the step",
                case.gain(ns, _fractions(workers, cpus), "bound: time in data loading on the loop's path (Amdahl)"),
                tuple(np.flatnonzero(outer)[:20].tolist()),
                lines,
                tuple(evidence),
                _TF_REMEDY if of_tf.any() else _remedy(workers, cpus),
                self.learn_more,
                share,
                "data_loading",
            )
        ]


_OF_TF = "^IteratorGetNext"
"""What TensorFlow asks a tf.data pipeline by."""
_TF_REMEDY = (
    "Let tf.data work ahead: .map(..., num_parallel_calls=tf.data.AUTOTUNE), .cache() behind what is the same in every "
    "pass, and .prefetch(tf.data.AUTOTUNE) as the last stage."
)
_FIRST = 20
"""Times the mean of the others: a batch that took so long was waited for while workers started, or read a cold disk."""


def _beside(case: Case, loading: Mask, outer: Mask) -> list[str]:
    """A first batch that is none of the mean, and what the device does meanwhile."""
    said = []
    taken = case.tree.exclusive("call_time")
    row = int(np.flatnonzero(outer)[np.argmax(taken.max[outer])])
    longest, others = int(taken.max[row]), int(taken.count[row]) - 1
    if others > 0 and longest > _FIRST * (int(taken.sum[row]) - longest) / others:
        said.append(f"one batch, the first as a rule, took {duration(longest)}, which is left out of the mean")
    idle = int(np.where(case.below(loading), case.tree.exclusive("gpu_idle_time").sum, 0).sum())
    if idle:
        said.append(f"the device idles {duration(case.per_step(idle))} a step meanwhile")
    return said


def _makers(case: Case) -> tuple[list[Line], list[str]]:
    """The user's functions that make samples and join them, where the training process calls them itself."""
    made = [one for several in habits_listed(case, "batches") for one in several]
    known = max(made, key=lambda one: int(one.get("join_ns", 0)), default=None)
    if known is None:
        return [], []
    lines, said = [], []
    batches = max(int(known.get("batches", 0)), 1)
    for kind in ("join", "items"):
        place = known.get(kind)
        if not isinstance(place, dict) or origin(str(place.get("file", ""))) != Origin.USER:
            continue
        line = case.line_at(str(place["file"]), int(place["line"]), str(place["name"]))
        lines.append(line)
        spent = f"joins them in {duration(int(known['join_ns']) / batches)}" if kind == "join" else "makes samples"
        said.append(f"{line.function} ({line.short}:{line.line}) {spent}")
    return lines, said


def _sampled(case: Case, one: SampledFunction) -> str:
    """`61 % of the CPU time of loading in Images.__getitem__ (data.py:12), mostly in argsort (40 %)`."""
    everything = int(case.tree.exclusive(METRIC).sum[case.in_phase("data loading")].sum())
    line = case.line(one.row)
    where = f" ({line.short}:{line.line})" if line else ""
    called = f", mostly in {names_of([one])}" if one.called else ""
    return f"{percent(one.ns / max(everything, 1))} of the CPU time of loading in {one.name}{where}{called}"


def _fractions(workers: int, cpus: int) -> tuple[float, float, float]:
    """Workers overlap loading with the step as far as there are cores for both."""
    if workers:
        return 0.0, 0.3, 1.0
    return (0.0, 0.5, 1.0) if cpus and cpus <= 2 else (0.3, 0.85, 1.0)


def _remedy(workers: int, cpus: int) -> str:
    if not workers:
        most = max(1, min(8, cpus - 1)) if cpus else 4
        return (
            "Make each sample cheaper (work that is the same every time belongs before the loop, tensors are made from "
            f"one array rather than lists), and let DataLoader(num_workers={most}, persistent_workers=True) prepare "
            "the next batch while this one is trained on."
        )
    if cpus and workers > cpus:
        return f"There are more workers than CPUs: num_workers={max(1, cpus - 1)} saves their standing in line."
    return (
        "Make each sample cheaper, raise prefetch_factor, or store the data as the loader needs it (decoded, in few "
        "large files); more workers help only while there are idle CPUs."
    )
