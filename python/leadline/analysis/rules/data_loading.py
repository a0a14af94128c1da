"""`data_loading`: the step waits for its batch."""

from __future__ import annotations

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.columns import Mask
from leadline.analysis.functions import METRIC
from leadline.analysis.measurable import NO_FIX, PROVE
from leadline.analysis.origin import Origin, origin
from leadline.analysis.rules.base import CannotTell, Case, Finding, Line, Option, Rule, Severity, Values
from leadline.analysis.rules.habits import habits_listed
from leadline.analysis.rules.loading_bursts import in_bursts
from leadline.analysis.rules.loading_gain import crowding_gain, loading_gain
from leadline.analysis.rules.place import instead_at
from leadline.analysis.rules.processes import cpus as count_cpus
from leadline.analysis.rules.processes import started
from leadline.analysis.rules.processes import workers as count_workers
from leadline.analysis.rules.rows_one_by_one import AT_ONCE, one_by_one
from leadline.analysis.rules.same_samples import same_each_time
from leadline.analysis.sampled import SampledFunction, names_of
from leadline.analysis.waiting import in_line_ns
from leadline.schema import FrameKind
from leadline.units import duration, percent


class DataLoading(Rule):
    name = "data_loading"
    asks = "Does the training loop wait for its batches?"
    on_cpu = True
    options = (
        Option("share", 20, "%", "below this, a healthy loader with a tiny model waits as much"),
        Option("info", 10, "%", "a tenth of the step is worth knowing"),
        Option("restarts", 3, "1", "starts per worker; two passes, one to train and one to evaluate, start each twice"),
        Option("mean", 50_000, "ns", "a batch that arrives faster than this cannot come much faster"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        waiting = self._waiting(case, values) or self._beside(case, values)
        return waiting + self._restarted(case, values) + self._made_again(case, values)

    def _beside(self, case: Case, values: Values) -> list[Finding]:
        """Workers that are never late, but take the cores that training waits for."""
        row, workers, cpus = _row_of_workers(case), count_workers(case), count_cpus(case)
        total = case.loop.step_ns * case.loop.steps
        in_line = max(case.loop.of.main.core_wait_ns, 0.0) * case.loop.steps
        making, sampled = _sampled_ns(case), case.sampled(case.in_phase("data loading"))
        if row < 0 or not workers or not cpus or not sampled or in_line < values["share"] * total:
            return []
        taken = making / (cpus * total)
        if taken < values["share"]:
            return []
        maker, cheaper = _instead(case, row, sampled)
        spares = sampled[0].ns / making if cheaper else _HALF
        several = f"{workers} worker{'s' if workers > 1 else ''}"
        return [
            Finding(
                self.name,
                Severity.WARNING,
                f"Making batches takes {percent(taken)} of the cores' time, and training waits for a core meanwhile",
                crowding_gain(case, in_line, making * spares),
                tuple(sampled[0].rows[:20].tolist()),
                case.lines([one.row for one in sampled[:2]]),
                (
                    f"{several} and training share {cpus} core{'s' if cpus > 1 else ''}",
                    *(_sampled(case, one) for one in sampled[:2]),
                ),
                cheaper or _remedy(workers, cpus, early=False),
                self.learn_more,
                case.share(int(in_line)),
                fix=NO_FIX,
                measured_by=PROVE,
                of_place=bool(cheaper),
                change_at=maker,
            )
        ]

    def _made_again(self, case: Case, values: Values) -> list[Finding]:
        """Samples that each pass over the data makes anew, although nothing of chance is in them."""
        loading = case.named(FrameKind.PHASE, "data loading") & case.loop.inside
        if not loading.any() or case.ranks > 1:
            return []
        made = habits_listed(case, "batches")
        known = max(made, key=lambda one: int(one.get("batches", 0)), default=None)
        passes = int(known.get("passes", 0)) if known is not None else 0
        whole = known is not None and int(known.get("batches", 0)) >= _OF_A_PASS * passes  # no next(iter(loader))
        place = same_each_time(case, known) if known is not None and passes >= 2 and whole else None
        if known is None or place is None:
            return []
        ns = max(int(case.inclusive_time[case.first_of(loading)].sum()) - int(known.get("join_ns", 0)), 0)
        share = case.share(ns)
        if share < values["share"]:
            return []
        return [
            Finding(
                self.name,
                Severity.WARNING,
                f"{place.function} makes the same samples again in each of {passes} passes over the data, "
                f"{percent(share)} of the step",
                case.gain(
                    ns, (0.2, 0.8 * (1 - 1 / passes), 1), "bound: what makes samples, in all passes but the first"
                ),
                tuple(np.flatnonzero(loading)[:20].tolist()),
                (place,),
                ("it draws no random numbers; the time to collate them is not counted",),
                "Make each sample once: before the loop, or keep the samples (a list, functools.lru_cache, a file "
                "of tensors), if memory allows.",
                self.learn_more,
                share,
            )
        ]

    def _restarted(self, case: Case, values: Values) -> list[Finding]:
        """Workers that are started anew for every pass over the data."""
        told, row = restarts(case), _row_of_workers(case)
        if row < 0:
            return []
        if told is None:
            return self._started_often(case, row, values)
        if told.starts < values["restarts"] * told.loaders:
            return []
        share = case.share(told.waited_ns)
        return [
            Finding(
                self.name,
                Severity.WARNING if share >= values["share"] else Severity.INFO,
                f"Loader workers are restarted for each pass, {told.starts} times, {percent(share)} of the step",
                case.gain_sums(
                    (told.saved_ns * 0.3, told.saved_ns * 0.8, float(told.waited_ns)),
                    "measured: starting them, and their first batches; persistent workers make a first batch too",
                ),
                (row,),
                case.lines([row]),
                (
                    f"starting them takes {duration(told.start_ns / told.starts)} each time, "
                    f"and their first batch {duration(told.first_ns / told.starts)}",
                ),
                _KEEP,
                self.learn_more,
                max(share, 0.05),
                fix=_KEEPS_WORKERS,
            )
        ]

    def _started_often(self, case: Case, row: int, values: Values) -> list[Finding]:
        """The same of a file that only tells which processes there were."""
        at_once, all_of, between = count_workers(case), len(started(case)), case.between_ns
        if not at_once or all_of < values["restarts"] * at_once:
            return []
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
                ("a new process imports the program first, and the loop waits for its first batches",),
                _KEEP,
                self.learn_more,
                0.05,
                fix=_KEEPS_WORKERS,
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
        of_workers = "MultiProcessing" in str(detail.get("loader", ""))
        workers, tensors = (count_workers(case), _tensors_of_a_batch(case)) if of_workers else (0, 0)
        evidence = [f"{duration(ns / max(batches, 1))} a batch, {batches:,} batches"]
        work = case.by_line(case.below(loading) & ~loading, case.time)
        lines = case.lines([row, *(group.row for group in work[:2])])
        cpus = count_cpus(case)
        keep = False
        evidence += _beside(case, loading, outer)
        told = restarts(case)
        if told is not None and told.first_ns * 5 >= ns:
            keep = told.first_ns * 2 >= ns and told.starts > told.loaders
            evidence.append(
                f"{percent(min(told.first_ns / max(ns, 1), 1.0))} of it is the wait for the first batch of workers "
                f"that had just started, {told.starts} times"
            )
        if workers:
            several = f"{workers} worker process{'es' if workers > 1 else ''}"
            evidence.append(f"{several} on {cpus} CPUs" if cpus else several)
        elif not of_tf.any():
            evidence.append("the training process makes the batches itself (num_workers=0)")
            if work:
                first = case.line(work[0].row)
                where = f"{first.short}:{first.line}" if first else ""
                evidence.append(f"{percent(work[0].value / max(ns, 1))} of it in operators at {where}")
            makers, said = _makers(case)
            lines = (*lines, *makers)[:4]
            evidence += said
        if tensors:
            evidence.append(f"a batch is {tensors:,} tensors, and each crosses processes by itself")
        sampled = case.sampled(case.in_phase("data loading"))  # of worker processes too
        if sampled:
            lines = case.lines([row, *(one.row for one in sampled)])
            evidence += [_sampled(case, one) for one in sampled[:2]]
        early = bool(workers) and in_bursts(case, row, workers)
        remedy = _TF_REMEDY if of_tf.any() else _KEEP if keep else _remedy(workers, cpus, early=early)
        maker, cheaper = (None, "") if keep else _instead(case, row, sampled)
        by_row = 0 if keep or cheaper else one_by_one(case, loading) // max(batches, 1)
        if by_row:
            evidence.append(f"{by_row:,} aten::select a batch: rows of tensors in memory are taken one by one")
        remedy = remedy if keep else _JOIN if tensors else AT_ONCE if by_row else remedy
        spares = sampled[0].ns / max(_sampled_ns(case), 1) if cheaper and sampled else 0.0
        spares = 0.9 if by_row and not workers else spares
        return [
            Finding(
                self.name,
                Severity.WARNING if share >= values["share"] else Severity.INFO,
                f"The loop waits for data {percent(share)} of the step{_for_a_core(case, loading)}"
                + (": rows are taken from tensors one by one" if by_row else ""),
                loading_gain(case, ns, cheaper=spares, workers=workers, cpus=cpus),
                tuple(np.flatnonzero(outer)[:20].tolist()),
                lines,
                tuple(evidence),
                f"{cheaper} {remedy}".lstrip(),
                self.learn_more,
                share,
                "data_loading",
                _KEEPS_WORKERS if keep else NO_FIX if tensors or by_row or workers >= min(cpus or 1, 4) else "",
                measured_by=PROVE if remedy.startswith(_CHEAPER) else "",
                of_place=bool(cheaper),
                change_at=maker,
            )
        ]


_KEEP = (
    "Keep the workers from one pass over the data to the next: DataLoader(persistent_workers=True); they do not "
    "see later changes of the data set in the program."
)
_KEEPS_WORKERS = "persistent_workers"
"""What `leadline try --fix` calls it."""
_CHEAPER = "Make each sample cheaper"
_MANY_TENSORS = 64
"""Of a batch: each is a file of shared memory, and takes 0.05 to 0.2 ms to open and to close."""
_JOIN = (
    "Let workers join what belongs together into few tensors: a collate_fn that stacks or concatenates, with lengths "
    "to split them by. Each tensor of a batch crosses processes by itself."
)
_OF_TF = "^IteratorGetNext"
"""What TensorFlow asks a tf.data pipeline by."""
_TF_REMEDY = (
    "Let tf.data work ahead: .map(..., num_parallel_calls=tf.data.AUTOTUNE), .cache() after what is the same in every "
    "pass, and .prefetch(tf.data.AUTOTUNE) as the last stage."
)
_MOSTLY = 0.25
"""Of the CPU time of loading: with less a line is not what batches wait for."""
_MUCH = 0.05
"""Of the step."""
_HALF = 0.5
"""Of the work of making batches: what a remedy spares that is not known."""
_OF_A_PASS = 3
"""Batches: with fewer a program begins passes and does not end them."""
_FIRST = 20
"""Times the mean of the others: a batch that took so long was waited for while workers started, or read a cold disk."""


@dataclass(frozen=True)
class Restarts:
    """Of all loaders that start workers: how many there are, how often they did, the time that took and that their
    first batches were waited for; `saved_ns`: of the starts but the first of each loader."""

    loaders: int
    starts: int
    start_ns: int
    first_ns: int

    @property
    def waited_ns(self) -> int:
        return self.start_ns + self.first_ns

    @property
    def saved_ns(self) -> float:
        return self.waited_ns * (self.starts - self.loaders) / self.starts


def restarts(case: Case) -> Restarts | None:
    """What the profiled processes tell of it; None where no loader with workers was used, or none tells."""
    told = [one for one in habits_listed(case, "passes") if int(one.get("starts", 0)) > 0]
    if not told:
        return None
    starts, start_ns, first_ns = (
        sum(int(one.get(name, 0)) for one in told) for name in ("starts", "start_ns", "first_ns")
    )
    return Restarts(len(told), starts, start_ns, first_ns)


def _tensors_of_a_batch(case: Case) -> int:
    """Of the loader with workers whose batches have most; 0 for few."""
    most = max((int(one.get("tensors", 0)) for one in habits_listed(case, "passes")), default=0)
    return most if most >= _MANY_TENSORS else 0


def _row_of_workers(case: Case) -> int:
    """The phase of a loader with workers that is waited for longest; -1 where there is none."""
    loading = np.flatnonzero(case.named(FrameKind.PHASE, "data loading") & (case.calls > 0)).tolist()
    rows = [row for row in loading if "MultiProcessing" in str(case.tree.node(row).detail.get("loader", ""))]
    return int(max(rows, key=lambda row: int(case.inclusive_time[row]), default=-1))


def _beside(case: Case, loading: Mask, outer: Mask) -> list[str]:
    """A first batch that is none of the mean, and what the device does meanwhile."""
    said = []
    taken = case.tree.exclusive("call_time")
    row = int(np.flatnonzero(outer)[np.argmax(taken.max[outer])])
    longest, others = int(taken.max[row]), int(taken.count[row]) - 1
    if others > 0 and longest > _FIRST * (int(taken.sum[row]) - longest) / others:
        said.append(f"one batch, usually the first, took {duration(longest)}; the mean leaves it out")
    idle = int(np.where(case.below(loading), case.tree.exclusive("gpu_idle_time").sum, 0).sum())
    if idle:
        said.append(f"the device idles {duration(case.per_step(idle))} a step meanwhile")
    return said


def _for_a_core(case: Case, loading: Mask) -> str:
    """What of that the account of the step calls a wait for a core, where it is much."""
    part = case.share(in_line_ns(case.tree, case.below(loading) & case.on_own_thread))
    return f" ({percent(part)} because no core was free)" if part >= _MUCH else ""


def _makers(case: Case) -> tuple[list[Line], list[str]]:
    """The user's functions that make samples and join them, where the training process calls them itself."""
    made = habits_listed(case, "batches")
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


def _instead(case: Case, row: int, sampled: list[SampledFunction]) -> tuple[Line | None, str]:
    """What the line that makes most of the batches' cost tells to do, with it; else the line that asks for batches."""
    most = [one for one in sampled[:1] if one.ns >= _MOSTLY * _sampled_ns(case)]
    asked = [(one.row, name) for one in most for name in (*(name for name, _ in one.called[:2]), "")]
    for node, name in (*asked, (row, "")):
        line = case.line(node)
        if line is not None and (told := instead_at(case, line.file, line.line, name)):
            return line, told
    return None, ""


def _sampled_ns(case: Case) -> int:
    """CPU time of loading by samples, in every process."""
    return int(case.tree.exclusive(METRIC).sum[case.in_phase("data loading")].sum())


def _sampled(case: Case, one: SampledFunction) -> str:
    """`61 % of the CPU time of loading in Images.__getitem__ (data.py:12), mostly in argsort (40 %)`."""
    line = case.line(one.row)
    where = f" ({line.short}:{line.line})" if line else ""
    called = f", mostly in {names_of([one])}" if one.called else ""
    return f"{percent(one.ns / max(_sampled_ns(case), 1))} of the CPU time of loading in {one.name}{where}{called}"


def _remedy(workers: int, cpus: int, *, early: bool) -> str:
    """`early`: whether batches that are made ahead would help."""
    if not workers:
        most = max(1, min(8, cpus - 1)) if cpus else 4
        cheaper = "move work that is the same every time before the loop, make tensors from one array, not from lists"
        ahead = f"DataLoader(num_workers={most}, persistent_workers=True)"
        if cpus and cpus <= 2:  # a worker takes the core that training needs
            return f"{_CHEAPER}: {cheaper}. Let {ahead} prepare the next batch meanwhile."
        return f"Let {ahead} prepare the next batch while this one is trained on. {_CHEAPER}: {cheaper}."
    if cpus and workers > cpus:
        return f"Use num_workers={max(1, cpus - 1)}: there are more workers than CPUs, so they wait for each other."
    more = " raise prefetch_factor," if early else ""
    return (
        f"{_CHEAPER},{more} or store the data as the loader needs it (decoded, in few large files); more "
        "workers help only while there are idle CPUs."
    )
