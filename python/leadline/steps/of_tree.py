"""Steps as the calling context tree of a profile counts them: phases and outermost calls that occur once a step.

Sums over a run hold imports, set-up and first calls, so only what repeats is looked at; the number of calls of some
operator never is, unless nothing but launches of kernels is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass, replace
from leadline.profiles import Profile, Tree
from leadline.profiles.meta import is_imported
from leadline.profiles.rollup import nearest
from leadline.profiles.step_rows import rows_of
from leadline.schema import FrameKind
from leadline.steps import jax_programs
from leadline.steps.jax_programs import PROGRAM, compiled_functions, differentiated, function_of, turns_of
from leadline.steps.model import BATCHES, LAUNCHES, MODULE_CALLS, OPTIMIZER, PROGRAM_CALLS, STEP_CALLS
from leadline.steps.recorded import Recorded, by_process, without_first_calls
from leadline.steps.untimed import untimed_steps

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

_SEVERAL = 1.5  # times as many optimizers' steps as gradients: several optimizers take turns behind one backward pass
_MOST = 0.5  # of the outermost calls' time: the step's own
_EXTREME = 2.0**62  # times of a damaged file stay numbers


@dataclass(frozen=True)
class Counted:
    """Steps of one process. `marks`: rows of nodes that stand for one step each, the first is the one that was counted;
    `weight`: wall time of what repeats, which tells the process that does most."""

    process: int
    thread: int
    steps: int
    rests_on: str
    marks: Rows
    timed_by: str = ""
    mean_ns: float = 0.0
    deviation_ns: float = 0.0
    min_ns: int = 0
    max_ns: int = 0
    timed: int = 0
    warm_up: int = 0
    weight: float = 0.0
    running_ns: float = -1.0
    core_wait_ns: float = -1.0
    median_ns: float = 0.0
    recorded: Recorded | None = None


def recorded_steps(profile: Profile) -> dict[int, Recorded]:
    """What the file's table of steps says of each process."""
    return by_process(rows_of(profile.tables), profile.tables["threads"]["process"].tolist())


def counted(profile: Profile) -> Iterator[Counted]:
    """The steps of each process in which something repeats."""
    tree = profile.tree
    recorded = recorded_steps(profile)
    seen = _Tree(tree, is_imported(profile.meta), recorded, untimed_steps(profile, recorded))
    for process in profile.processes:
        one = seen.of_process(process.row, process.node.row)
        if one is not None:
            yield one


class _ByProcess:
    """Rows of nodes, split by their process once: of hundreds of processes each has few of them."""

    def __init__(self, rows: Rows, process: Rows) -> None:
        order = np.argsort(process[rows], kind="stable")
        self._rows = rows[order]
        self._keys = process[self._rows]

    def of(self, process: int) -> Rows:
        first, last = np.searchsorted(self._keys, (process, process + 1))
        return self._rows[first:last]


class _Tree:
    """The columns that all processes share."""

    def __init__(
        self, tree: Tree, imported: bool, recorded: Mapping[int, Recorded], untimed: Mapping[int, int]
    ) -> None:
        self.tree = tree
        self.recorded = recorded
        self.untimed = untimed  # by process
        self.imported = imported  # a trace without marks may begin and end anywhere
        kinds = tree.kinds
        self.process = nearest(tree.shape, kinds == int(FrameKind.PROCESS))
        self.thread = nearest(tree.shape, kinds == int(FrameKind.THREAD))
        self.calls = tree.exclusive("call_time")
        self.count = self.calls.count
        self.phase = kinds == int(FrameKind.PHASE)
        self.module = kinds == int(FrameKind.MODULE)
        self.operator = kinds == int(FrameKind.OPERATOR)
        self.compiling = nearest(tree.shape, self._frames("compile")) >= 0
        self.weight = np.bincount(self.process + 1, tree.exclusive("time").sum, len(tree) + 1)
        self._known: dict[str, _ByProcess] = {}
        self.threads = {int(node): row for row, node in enumerate(tree.tables["threads"]["node"].tolist())}

    def _frames(self, name: str) -> Mask:
        found: Mask = self.tree.frame_rows(FrameKind.PHASE, name)[self.tree.frame_of]
        return found

    def rows(self, name: str, process: int) -> Rows:
        """Nodes of a phase that has calls, in that process, the most called first."""
        if name not in self._known:
            called = np.flatnonzero(self._frames(name) & self.phase & (self.count > 0))
            self._known[name] = _ByProcess(called, self.process)
        rows = self._known[name].of(process)
        return rows[np.argsort(-self.count[rows], kind="stable")]

    def of_process(self, number: int, process: int) -> Counted | None:
        spans = self.rows("step", process)
        spans = spans[self.tree.kinds[self.tree.parent[spans]] == int(FrameKind.THREAD)]
        optimizer, loading = self.rows("optimizer", process), self.rows("data loading", process)
        marked = int(self.count[spans].sum())
        ended = self._ended(number, marked)
        if optimizer.size:
            asked = int(self.count[optimizer[0]])
            steps, rests_on, marks = self._with_one_gradient(int(optimizer[0]), asked), OPTIMIZER, optimizer
            if marked and not asked * 0.5 <= ended <= asked * _SEVERAL:
                # the program marks its steps whatever optimizers do in one; or several optimizers end one step together
                turns = asked / ended
                together = turns > _SEVERAL and abs(turns - round(turns)) * ended <= 1
                steps, rests_on = ended, OPTIMIZER if together else STEP_CALLS
        elif marked:
            steps, rests_on = ended, STEP_CALLS
            marks = self._outermost_calls(process, steps)
            marks = marks if marks.size else spans
        elif loading.size:
            steps, rests_on = self._without_ends(int(loading[0])), BATCHES
            marks = loading
        else:
            return self._repeated_calls(number, process)
        one = Counted(
            number, self._thread_of(int(marks[0])), steps, rests_on, self._beside(marks, loading, steps),
            weight=self._weight(process),
        )  # fmt: skip
        return self._timed(one, spans, number, process)

    def _ended(self, process: int, timed: int) -> int:
        """How many steps ended, where so many were timed."""
        return timed + self.untimed.get(process, 1)

    def _thread_of(self, row: int) -> int:
        return self.threads.get(int(self.thread[row]), -1)

    def _weight(self, process: int) -> float:
        return float(self.weight[process + 1])

    def _beside(self, marks: Rows, loading: Rows, steps: int) -> Rows:
        """The marks of the first one's thread and the loader's phases that occur about as often."""
        near = np.concatenate((marks, loading[self.count[loading] * 2 >= steps]))
        near = near[self.thread[near] == self.thread[marks[0]]]
        rest = np.unique(near[(self.count[near] * 10 >= steps) & (near != marks[0])])
        return np.concatenate((marks[:1], rest))

    def _with_one_gradient(self, anchor: int, asked: int) -> int:
        """Steps, where an optimizer was asked `asked` times on one line: as many as gradients were computed where
        several optimizers (one for each parameter, as in Pyro) take their turns behind each of them. An operator that
        was compiled anew has a path for each time: those of one name at one line count together."""
        tree = self.tree
        owner = self._with_backward.of(int(self.process[anchor]))
        owner = owner[self.thread[owner] == self.thread[anchor]]
        if not owner.size:
            return asked
        above = self._python[owner]
        line = np.where(above >= 0, tree.frame_of[np.maximum(above, 0)].astype(np.int64), -1)
        _, group = np.unique(np.stack((tree.frame_of[owner], line)), axis=1, return_inverse=True)
        most = int(np.bincount(group.ravel(), self.count[owner]).max(initial=0))
        return most if 0 < most * _SEVERAL <= asked else asked

    @cached_property
    def _with_backward(self) -> _ByProcess:
        """Operators with a backward pass below them."""
        parent = self.tree.parent[np.flatnonzero(self._frames("backward"))]
        owner = np.unique(parent[parent >= 0])
        return _ByProcess(owner[self.operator[owner]], self.process)

    @cached_property
    def _python(self) -> Rows:
        return nearest(self.tree.shape, self.tree.kinds == int(FrameKind.PYTHON))

    @cached_property
    def _modules(self) -> _ByProcess:
        return _ByProcess(np.flatnonzero(self.module), self.process)

    def _without_ends(self, anchor: int) -> int:
        """Batches, where a loader was asked `asked` times: the end of each pass over the data answers with none, which
        the calls of the thread's modules tell."""
        asked = int(self.count[anchor])
        modules = self._modules.of(int(self.process[anchor]))
        count = self.count[modules[self.thread[modules] == self.thread[anchor]]]
        found, times = np.unique(count[(count * 10 >= asked * 8) & (count < asked)], return_counts=True)
        return int(found[np.argmax(times)]) if len(found) else asked

    def _outermost(self, what: str, process: int) -> Rows:
        """Modules, programs, or both as `either`, that have none of them above, outside of compilation."""
        key = f"outermost {what}"
        if key not in self._known:
            wanted = {"module": self.module, "program": self._programs, "either": self.module | self._programs}[what]
            above = nearest(self.tree.shape, wanted)[np.maximum(self.tree.parent, 0)]
            self._known[key] = _ByProcess(np.flatnonzero(wanted & (above < 0) & ~self.compiling), self.process)
        return self._known[key].of(process)

    @cached_property
    def _programs(self) -> Mask:
        """Operators that are a whole program which a compiler made of a function of the program's: by their name, or by
        the pool that runs what is in them."""
        tree = self.tree
        pool = self._frames("on another thread")
        held = np.zeros(len(tree), np.bool_)
        held[np.maximum(tree.parent[np.flatnonzero(pool)], 0)] = True
        held |= tree.frame_rows(FrameKind.OPERATOR, pattern=re.compile(PROGRAM))[tree.frame_of]
        of_jax, of_program = compiled_functions(tree)
        single = [f"{kind}({name})" for name in of_jax - of_program for kind in ("jit", "pjit")]
        for name in single:  # an operation that runs by itself is no step
            held &= ~tree.frame_rows(FrameKind.OPERATOR, name)[tree.frame_of]
        found: Mask = held & self.operator
        return found

    @cached_property
    def _calls(self) -> Rows:
        """Calls of outermost modules and programs. A module is no event of its own: as often as most operators in
        it were called from a path of their own, its backward pass left out."""
        tree = self.tree
        calls: Rows = np.where(self._programs, self.count, 0)
        first = self.module & (nearest(tree.shape, self.module)[np.maximum(tree.parent, 0)] < 0)
        top = nearest(tree.shape, first)
        outer = self.operator & (nearest(tree.shape, self.operator)[np.maximum(tree.parent, 0)] < 0)
        backward = nearest(tree.shape, self._frames("backward")) >= 0
        rows = np.flatnonzero(outer & (top >= 0) & (self.count > 0) & ~backward)
        # an operator called with several shapes is several nodes of one name
        first_of_name, of_name = self._of_one_line(rows, self.count)
        for module in np.unique(top[rows]).tolist():
            found, often = np.unique(of_name[first_of_name & (top[rows] == module)], return_counts=True)
            calls[module] = max(int(self.count[module]), int(found[np.argmax(often)]))
        return calls

    def _outermost_calls(self, process: int, steps: int) -> Rows:
        """Outermost modules, else programs, called at least once a step."""
        for what in ("module", "program"):
            rows = self._outermost(what, process)
            rows = rows[self._calls[rows] >= steps]
            if rows.size:
                return rows
        return np.zeros(0, np.int64)

    def _repeated_calls(self, number: int, process: int) -> Counted | None:
        """Calls of the outermost module, or of a compiled program, where one takes most of the time of all, or
        several do that are called equally often."""
        time = self.tree.inclusive("time").sum
        for what, rests_on in (("module", MODULE_CALLS), ("program", PROGRAM_CALLS)):
            rows = self._outermost(what, process)
            if not rows.size:
                continue
            if what == "program":
                time = jax_programs.time_of(self.tree, rows, self.rows("turn", process))
            spent, calls = self._of_one_line(rows, time)[1], self._of_one_line(rows, self._calls)[1]
            if what == "program":
                calls = np.where(self._runs_twice(rows), (calls + 1) // 2, calls)
            best = int(np.argmax(spent))
            first, steps = int(rows[best]), int(calls[best])
            in_turn = calls == steps  # the layers of a list are called one after another
            if steps < 2 or time[rows[in_turn]].sum() < _MOST * time[rows].sum():
                continue
            marks = np.concatenate(([first], rows[(calls >= steps) & (rows != first)]))
            found = Counted(number, self._thread_of(first), steps, rests_on, marks, weight=self._weight(process))
            return self._by_turns(found, process, {function_of(self.tree.node(row).name) for row in marks.tolist()})
        if self.imported or self._outermost("either", process).size:
            return None
        return self._launches(number, process)

    def _runs_twice(self, rows: Rows) -> Mask:
        """Programs of which each call runs a derivative of the same name, too."""
        tree, places = self.tree, self._differentiated
        return np.array([(int(tree.parent[row]), function_of(tree.node(row).name)) in places for row in rows.tolist()])

    @cached_property
    def _differentiated(self) -> set[tuple[int, str]]:
        return differentiated(self.tree)

    @cached_property
    def _kernels(self) -> _ByProcess:
        kernel = (self.tree.kinds == int(FrameKind.KERNEL)) & ~self.compiling
        return _ByProcess(np.flatnonzero(kernel), self.process)

    def _of_one_line(self, rows: Rows, values: Rows) -> tuple[Mask, Rows]:
        """For each row whether it is the first of its name on its line, and the sum over these: what was compiled anew,
        or called with other shapes, has a path for each."""
        tree = self.tree
        key = np.stack((tree.frames["name"][tree.frame_of[rows]].astype(np.int64), tree.parent[rows]))
        _, first, group = np.unique(key, axis=1, return_index=True, return_inverse=True)
        whole = np.clip(np.bincount(group.ravel(), values[rows], len(first)), -_EXTREME, _EXTREME)
        sums: Rows = whole.astype(np.int64)[group.ravel()]
        is_first = np.zeros(len(rows), np.bool_)
        is_first[first] = True
        return is_first, sums

    def _launches(self, number: int, process: int) -> Counted | None:
        """Where no framework tells of modules or programs: launches, as often as those of most device time are made."""
        tree = self.tree
        kernels = self._kernels.of(process)
        rows, of = np.unique(tree.parent[kernels], return_inverse=True)
        spent = np.bincount(of, tree.exclusive("gpu_time").sum[kernels], len(rows))
        again = self.count[rows] > 1
        if not spent[again].sum() or spent[again].sum() < _MOST * spent.sum():
            return None
        often, group = np.unique(self.count[rows[again]], return_inverse=True)
        steps = int(often[np.argmax(np.bincount(group, spent[again]))])
        first = int(rows[np.argmax(np.where(self.count[rows] == steps, spent, -1.0))])
        marks = rows[(self.count[rows] >= steps) & (rows != first) & (self.thread[rows] == self.thread[first])]
        marks = np.concatenate(([first], marks))
        return Counted(number, self._thread_of(first), steps, LAUNCHES, marks, weight=self._weight(process))

    def _timed(self, one: Counted, spans: Rows, number: int, process: int) -> Counted:
        """With the clock of what timed it: from border to border, else from batch to batch."""
        recorded = self.recorded.get(number)
        if recorded is not None and spans.size and recorded.count * 2 >= one.steps:
            return self._by_record(one, recorded, spans)
        if spans.size and int(self.count[spans].sum()) * 2 >= one.steps:
            return self._by(one, spans, "steps", self._ended(number, int(self.count[spans].sum())) / one.steps)
        return self._by_turns(one, process, {""})

    def _by_turns(self, one: Counted, process: int, of: set[str]) -> Counted:
        """With the clock of what comes again: a batch (`of`: the empty name), a run of one of these programs."""
        turns = self.rows("turn", process)
        turns = turns[(self.count[turns] * 2 >= one.steps) & (self.count[turns] <= 2 * one.steps)]
        told = turns_of(self.tree, turns, of)
        if not told:
            return one
        row = min(told, key=lambda row: abs(int(self.count[row]) - one.steps))
        timed_by = "calls" if self.tree.node(row).detail else "batches"
        return self._by(one, np.array([row]), timed_by, max(1, round(int(self.count[row]) / one.steps)))

    def _by_record(self, one: Counted, recorded: Recorded, spans: Rows) -> Counted:
        """Without warm-up, and without the slowest of the others where that was an accident."""
        scale = self._ended(one.process, recorded.count) / one.steps
        out = [step["wall_ns"] for step in recorded.warm_up]
        out += [recorded.accident["wall_ns"]] if recorded.accident is not None else []
        total, number = recorded.sums["wall_ns"] - sum(out), recorded.count - len(out)
        squares = float(self.calls.sum_squares[spans].sum()) - sum(float(wall) ** 2 for wall in out)
        mean = total / number
        spread = max(squares / number - mean * mean, 0.0) * number / (number - 1) if number > 1 else 0.0
        return replace(
            one, timed_by="steps", mean_ns=mean * scale, deviation_ns=float(np.sqrt(spread)) * scale,
            min_ns=recorded.sums["wall_min_ns"], max_ns=recorded.sums["wall_max_ns"], timed=number, warm_up=len(out),
            median_ns=recorded.quantile_ns(0.5) * scale, running_ns=_scaled(recorded.mean_of("running_ns"), scale),
            core_wait_ns=_scaled(recorded.mean_of("core_wait_ns"), scale), recorded=recorded,
        )  # fmt: skip

    def _mean(self, metric: str, rows: Rows) -> float:
        """Of what was measured in each step, without its largest where that was an accident; below 0: was not."""
        found = self.tree.exclusive(metric)
        count = int(found.count[rows].sum())
        spared = without_first_calls(found.sum[rows], found.count[rows], found.max[rows])
        return float(spared.sum()) / count if count else -1.0

    def _by(self, one: Counted, rows: Rows, timed_by: str, scale: float) -> Counted:
        calls = self.calls
        count = int(calls.count[rows].sum())
        spared = without_first_calls(calls.sum[rows], calls.count[rows], calls.max[rows])
        if timed_by == "calls" and jax_programs.waits_for_many(self.tree, rows, spared, one.marks):
            spared = calls.sum[rows]
        accident = bool((spared != calls.sum[rows]).any())
        mean = float(spared.sum()) / count
        if timed_by == "calls":  # a call returns at once: no turn is shorter than what its programs run for
            mean = max(mean, float(calls.sum[one.marks].sum()) / one.steps / scale)
        squares = float(calls.sum_squares[rows].sum()) - (
            float((calls.max[rows].astype(float) ** 2).sum()) if accident else 0
        )
        left = count - (len(rows) if accident else 0)
        spread = max(squares / max(left, 1) - mean * mean, 0.0) * left / max(left - 1, 1) if left > 1 else 0.0
        return Counted(
            one.process, one.thread, one.steps, one.rests_on, one.marks, timed_by,
            mean_ns=mean * scale, deviation_ns=float(np.sqrt(spread)) * scale, min_ns=int(calls.min[rows].min()),
            max_ns=int(calls.max[rows].max()), timed=left, warm_up=int(accident), weight=one.weight,
            running_ns=self._mean("step_running", rows) * scale,
            core_wait_ns=self._mean("step_core_wait", rows) * scale,
        )  # fmt: skip


def _scaled(value: float, scale: float) -> float:
    return value * scale if value >= 0 else value
