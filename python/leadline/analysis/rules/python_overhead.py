"""`python_overhead`: Python calls operators one element at a time, or takes the step itself."""

from __future__ import annotations

import ast

import numpy as np

from leadline.analysis.columns import Mask
from leadline.analysis.compilers import compilers
from leadline.analysis.functions import METRIC
from leadline.analysis.loop import least_step_ns
from leadline.analysis.measurable import NO_FIX, PROVE
from leadline.analysis.origin import Origin, origin
from leadline.analysis.rules.base import CannotTell, Case, Finding, Line, Option, Rule, Severity, Values
from leadline.analysis.rules.blocked import blocked_ns, waiting_lines
from leadline.analysis.rules.function_advice import instead_of_function, title_of
from leadline.analysis.rules.jaxwork import by_themselves
from leadline.analysis.rules.logging_in_loop import logging_calls
from leadline.analysis.rules.loop_advice import CELLS, OF_CELLS, instead_of_loop
from leadline.analysis.rules.place import instead_at
from leadline.analysis.rules.place.converts import INSTEAD, SPARES, converted
from leadline.analysis.rules.place.inside import inside_of
from leadline.analysis.rules.whole_arrays import whole_arrays
from leadline.analysis.rules.words import sureness
from leadline.analysis.sampled import names_of
from leadline.analysis.sourcecode import Block, carries_state, inputs_are_known
from leadline.analysis.threads import running_share
from leadline.analysis.waiting import METRIC as WAIT
from leadline.analysis.waiting import in_line_ns
from leadline.schema import FrameKind
from leadline.units import duration, percent, times

_CALLING_NS = 15_000.0
"""An operator on next to nothing takes this long with what it calls and its backward operator."""
_KNOWN, _UNKNOWN = 0.8, 0.5
"""Of a function: what a remedy that fits its line spares, and what any other does."""
_ENOUGH_SAMPLES = 20
"""Of one function: with fewer, its share is wrong by more than half."""
_BY_SAMPLES = "bound: the CPU time of this function, by samples"
_BASIS = "the calls of all iterations but one, with the Python around them"

_GOES_THROUGH = frozenset(("sum", "max", "min", "any", "all", "sorted", "list", "tuple", "map", "reduce", "set"))
"""Functions of Python's that ask a tensor for its elements one by one."""
_LEFT_OUT = ("backward", "optimizer", "data loading", "compile")
_LITTLE = 0.1
_WORTH = 0.04
"""Of the step without its waits for a core; a remedy spares half of it."""
_WORTH_A_COMPILER = 0.2
"""Of a loop whose turns need one another, for calling: with less, it computes, and there is nothing to advise."""
_TOO_FEW = 5
"""Samples of a function that say nothing."""


class PythonOverhead(Rule):
    name = "python_overhead"
    asks = "Does a Python loop call operators once per element, or Python take most of the step?"
    on_cpu = True
    options = (
        Option(
            "calls", 24, "1", "calls of one operator on one path and step; layers of one class repeat a dozen times"
        ),
        Option(
            "turns", 8, "1", "the same for operators that the loop's own lines call, which are no layers of a model"
        ),
        Option("share", 10, "%", "less of the step is not worth rewriting a loop"),
        Option("work", 1_000_000, "ns", "of operators a step; where there is less of it, Python always takes most"),
        Option("each", 200_000, "ns", "of Python for each operator called, else; calling takes a tenth of it"),
        Option("function", 15, "%", "of the step's CPU time in one function that calls no operators, by samples"),
        Option("python", 50, "%", "of a step that is spent outside operators and loading; tiny models come near"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        found = self._loops(case, values) + self._sampled(case, values)
        return found or self._between(case, values)

    def _sampled(self, case: Case, values: Values) -> list[Finding]:
        """Functions that take the step without calling operators: samples see them."""
        where = case.loop.inside & ~case.in_phase("data loading") & ~case.in_phase("compile")
        made = []
        ran = max(case.total_ns - _in_line_ns(case), 1.0)
        for one in case.sampled(where):
            share = one.ns / case.sampled_ns
            if share < values["function"]:
                break
            if one.ns < _WORTH * ran:
                continue
            number = int(case.tree.exclusive(METRIC).count[one.rows].sum())
            if number < _TOO_FEW:
                continue
            line = case.line(one.row)
            called = f", mostly in {names_of([one])}" if one.called else ""
            instead = instead_at(case, line.file, line.line) if line is not None else ""
            inside = inside_of(case, one.rows)
            values_to = converted(case, one.rows)
            spared = sum(each.ns for each in values_to)
            if 2 * spared < one.ns:
                values_to, spared = [], 0
            arrays = None if values_to or instead or inside else whole_arrays(case, one.rows)
            expected = spared * SPARES[1] or (_KNOWN if instead else _UNKNOWN) * one.ns
            made.append(
                Finding(
                    self.name,
                    Severity.WARNING if number >= _ENOUGH_SAMPLES else Severity.INFO,
                    title_of(case, one, inside, values_to, arrays),
                    case.gain_sums((spared * SPARES[0], expected, one.ns), _BY_SAMPLES),
                    tuple(one.rows[:20].tolist()),
                    case.lines([each.row for each in values_to] or [one.row]),
                    (
                        f"{duration(case.per_step(one.ns))} of {duration(case.per_step(case.sampled_ns))} a step"
                        f"{called}",
                        *((inside.text,) if inside else ()),
                        *((f"most of it: {arrays.text}",) if arrays else ()),
                        sureness(case, one.rows),
                    ),
                    INSTEAD
                    if values_to
                    else arrays.instead(one.name.rsplit(".", 1)[-1])
                    if arrays
                    else instead or instead_of_function(one, inside),
                    self.learn_more,
                    share if number >= _ENOUGH_SAMPLES else share / 2,
                    fix=NO_FIX,  # a compiler leaves what is no operator as it is
                    of_place=bool(instead or values_to),
                )
            )
        return made[:2]

    def _loops(self, case: Case, values: Values) -> list[Finding]:
        many = case.outer_operators & (case.calls >= min(values["turns"], values["calls"]) * case.loop.steps)
        many &= ~logging_calls(case)  # what logs is `logging_in_loop`'s
        many &= ~case.in_pool  # the loop of a compiled program's text has been unrolled
        for phase in _LEFT_OUT:
            many &= ~case.in_phase(phase)
        found: dict[tuple[str, int], tuple[Block, list[int]]] = {}
        for row in np.flatnonzero(many)[:2000].tolist():
            around = case.inner_loop(row) or _builtin(case, row)
            if around is not None:
                file, block = around
                least = values["turns"] if _by_itself(case, row, file, block) else values["calls"]
                if case.per_step(float(case.calls[row])) < least:
                    continue
                found.setdefault((file, block.first), (block, []))[1].append(row)
        made = [self._finding(case, file, block, np.array(rows), values) for (file, _), (block, rows) in found.items()]
        return sorted((one for one in made if one is not None), key=lambda one: -one.weight)[:2]

    def _finding(self, case: Case, file: str, block: Block, rows: np.ndarray, values: Values) -> Finding | None:
        first, node = block.first, block.node
        each = case.per_step(float(case.calls[rows].max()))
        rows = np.union1d(rows, _all_in(case, file, block, each))
        ns = int(case.inclusive_time[case.first_of(case.mask(rows))].sum())
        python = case.python_ns(case.mask(rows)) * case.calling_share
        share = case.share(ns + python)
        if share < values["share"]:
            return None
        in_turn = carries_state(node)
        total = case.per_step(float(case.calls[rows].sum()))
        order = rows[np.argsort(-case.inclusive_time[rows], kind="stable")]
        called = _lines_in_loop(case, order[:50].tolist(), file, node)
        head = case.line_at(file, first)
        sums = _fewer_calls(case, rows, ns, python, each)
        cells = in_turn and case.operators(*CELLS)[rows].any() and inputs_are_known(node)
        if in_turn and not cells and 2 * sums[0] < _WORTH_A_COMPILER * (ns + python):
            return None
        return Finding(
            self.name,
            Severity.INFO if (in_turn and not cells) or each < values["calls"] else Severity.WARNING,
            f"{_looping(block)} calls {times(total)} operators a step{_turns(case, rows, file, block)}, "
            f"{percent(share)} of the step",
            case.gain_sums(
                (0, 0.6 * ns + python, ns + python), "estimate: the cells, as one operator for all time steps"
            )
            if cells
            else case.gain_sums((0, *sums[:1], sums[2]), _BASIS + ", if one operator did all of it")
            if in_turn
            else case.and_warm(case.gain_sums(sums, _BASIS)),
            tuple(order[:20].tolist()),
            (*called, head) if called else (head,),
            (f"{times(total)} operators a step, {duration(ns / max(float(case.calls[rows].sum()), 1))} each",),
            OF_CELLS if cells else instead_of_loop(block, in_turn=in_turn),
            self.learn_more,
            share / 2 if in_turn and not cells else share,
            measured_by=PROVE,  # a compiler unrolls the loop and does not stack its elements
        )

    def _waits(self, case: Case, ns: float) -> Finding:
        """Not Python: the thread had no core and wanted none."""
        main, lines = case.loop.of.main, waiting_lines(case)
        return Finding(
            self.name,
            Severity.WARNING,
            f"The step waits for {percent(ns / case.loop.step_ns)} of its time, outside of operators and data loading",
            case.gain(ns * case.loop.steps, (0.5, 0.9, 1), "measured: time in which the loop's thread did not run"),
            (case.loop.root,),
            tuple(lines),
            (
                f"{duration(ns)} of a step's {duration(case.loop.step_ns)}; its thread ran {duration(main.running_ns)} "
                f"and waited {duration(max(main.core_wait_ns, 0.0))} for a core",
                *(("this line calls what waits",) if lines else ("`leadline run --wait` shows where",)),
            ),
            "Move the wait out of the loop: do it before, in another thread or process, or less often.",
            self.learn_more,
            ns / case.loop.step_ns,
            fix=NO_FIX,
        )

    def _between(self, case: Case, values: Values) -> list[Finding]:
        """Needs the wall time of steps."""
        loop = case.loop
        ns = float(case.samples[_between_operators(case)].sum()) if case.sampled_ns else case.between_ns
        whole = float(case.total_ns)
        in_line = min(_in_line_ns(case), max(whole - ns - loop.work_ns * loop.steps, 0.0))
        share = case.share(ns * whole / (whole - in_line)) if whole > in_line else 0.0
        if share < values["python"] or case.has_device or _one_by_one(case):
            return []
        taken = f"{percent(case.share(ns))} of a step"
        if in_line >= _LITTLE * case.total_ns:
            taken += f" ({percent(share)} without its waits for a core)"
        blocked = blocked_ns(case)
        if blocked >= 0.5 * ns / loop.steps:
            looked = bool((case.tree.exclusive(WAIT).sum[case.loop.inside] > 0).any())
            return [] if looked else [self._waits(case, blocked)]  # looks know the line: see `not_explained`
        # a thread that stood in line for a core was interrupted wherever it was, for longer than what it runs takes
        anchor = int(loop.anchors[0])
        ran = ns * running_share(case.profile, int(case.analysis.scopes.thread[anchor]))
        work = loop.work_ns
        if least := least_step_ns(case.profile, case.analysis.scopes, anchor):
            ran = min(ran, max(least - work, 0.0) * loop.steps)
            work = min(work, float(least))
        if work < values["work"] and ran < values["each"] * max(int(case.calls[case.called].sum()), 1):
            return []
        return [
            Finding(
                self.name,
                Severity.INFO,
                f"{taken} is spent outside operators, in Python and in calling them",
                case.gain(ns, (0, 0.3, 1), f"bound: {_measure(case)}"),
                (loop.root,),
                (),
                (
                    f"{duration(loop.step_ns)} a step, of which operators, loading and waits {duration(loop.work_ns)}",
                    *(() if case.sampled_ns else ("`leadline run --cpu-sample` shows where in Python",)),
                ),
                f"Give each call more to do (a larger batch), or {_compiled(compilers(case.profile.meta))}.",
                self.learn_more,
                min(share / 2, 0.04),
            )
        ]


def _one_by_one(case: Case) -> bool:
    """Whether most of what the loop calls are single operations of JAX: `op_by_op` knows their lines."""
    try:
        alone = int(case.calls[by_themselves(case)].sum())
    except CannotTell:
        return False
    return 2 * alone > int(case.calls[case.called].sum())


def _compiled(names: str) -> str:
    if names == "jax.jit":  # the model mostly is, and the rest of the step is not
        return "put all of the step under one jax.jit"
    return f"let {names} run the model without Python between"


def _between_operators(case: Case) -> Mask:
    """Where samples are of Python that calls operators, and of no phase that has findings of its own."""
    return (case.analysis.scopes.inner < 0) & ~case.in_phase("data loading") & ~case.in_phase("compile")


def _in_line_ns(case: Case) -> float:
    """Of all steps, how long their thread stood in line for a core, by looks; 0 where no clock knew their length."""
    if not case.loop.measured_by:
        return 0.0
    return min(in_line_ns(case.tree, case.on_own_thread), 0.9 * case.total_ns)


def _by_itself(case: Case, row: int, file: str, block: Block) -> bool:
    """Whether a line of the loop calls the operator without a module between."""
    for at in reversed(case.tree.path_rows(row)):
        if case.tree.kinds[at] == int(FrameKind.MODULE):
            return False
        if case.tree.kinds[at] == int(FrameKind.PYTHON):
            node = case.tree.node(at)
            if node.file == file and block.first <= node.line <= block.last:
                return True
    return False


def _all_in(case: Case, file: str, block: Block, turns: float) -> np.ndarray:
    """What else the loop calls at least every second turn: its other operators go with those that were counted."""
    inside = case.lines_between(file, block.first, block.last) & case.outer_operators
    inside &= case.per_step(1.0) * case.calls >= turns / 4
    for phase in _LEFT_OUT:
        inside &= ~case.in_phase(phase)
    return np.flatnonzero(inside)


def _turns(case: Case, rows: np.ndarray, file: str, block: Block) -> str:
    """` in 845 iterations`: the largest number of calls that several operators of the loop's own lines have, as one of
    them may be called twice in each; empty where no line of the loop calls one itself."""
    own = [row for row in rows[:500].tolist() if _by_itself(case, row, file, block)]
    if not own or block.kind.endswith("()"):
        return ""
    counts, often = np.unique(case.calls[own], return_counts=True)
    shared = counts[often > 1] if (often > 1).any() else counts
    return f" in {times(case.per_step(float(shared.max())))} iterations"


def _looping(block: Block) -> str:
    return f"Python's {block.kind}" if block.kind.endswith("()") else f"The loop at line {block.first}"


def _builtin(case: Case, row: int) -> tuple[str, Block] | None:
    """A function of Python's on the line of an operator that goes through what it is given: `sum(tensor)`."""
    user = int(case.analysis.scopes.user[row])
    if user < 0 or int(case.tree.parent[row]) != user or origin((node := case.tree.node(user)).file) != Origin.USER:
        return None
    source = case.sources.of(node.file)
    function = source.function(node.line) if source else None
    for call in ast.walk(function) if function is not None else ():
        if isinstance(call, ast.Call) and call.lineno == node.line and isinstance(call.func, ast.Name | ast.Attribute):
            name = call.func.id if isinstance(call.func, ast.Name) else call.func.attr
            if name in _GOES_THROUGH and (isinstance(call.func, ast.Name) or name == "reduce"):
                return node.file, Block(f"{name}()", node.line, node.line, call)
    return None


def _fewer_calls(case: Case, rows: np.ndarray, ns: int, python: float, turns: float) -> tuple[float, float, float]:
    """One call for all turns spares the others' calling, in Python and in the operator; its computing stays."""
    spared = 1 - 1 / max(turns, 1.0)
    calling = min(float(ns), _CALLING_NS * float(case.calls[rows].sum()))
    low = spared * (calling / 2 + python / 2)
    high = spared * (ns + min(3 * python, case.between_ns))
    return low, max(low, spared * (calling + python)), high


def _lines_in_loop(case: Case, rows: list[int], file: str, loop: ast.AST) -> list[Line]:
    """The lines of the loop's body on the paths to these nodes, at most two."""
    first, last = getattr(loop, "lineno", 0), getattr(loop, "end_lineno", 0)
    found: dict[int, Line] = {}
    for row in rows:
        for at in reversed(case.tree.path_rows(row)):
            if case.tree.kinds[at] != int(FrameKind.PYTHON):
                continue
            node = case.tree.node(at)
            if node.file == file and first <= node.line <= last:
                name = "" if node.name == "<module>" else node.name
                found.setdefault(node.line, case.line_at(file, node.line, name))
                break
        if len(found) == 2:
            break
    return list(found.values())


def _measure(case: Case) -> str:
    if case.sampled_ns:
        return "CPU time between operators, by samples"
    return f"the wall time of a step less its operators (by {case.loop.measured_by})"
