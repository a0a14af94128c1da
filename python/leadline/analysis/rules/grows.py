"""`grows`: a path costs more and more in the course of the run, without its work having been asked to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from leadline._dataclass import dataclass
from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.by_shape import tensor_shapes
from leadline.analysis.rules.place import at_line, instead_at
from leadline.analysis.rules.place.measured import ever_dearer, ever_more, inputs_grow
from leadline.analysis.rules.words import listed
from leadline.analysis.threads import running_share
from leadline.units import duration, percent, times
from leadline.work.operators import class_of_operator

_DENORMAL = ("sqrt", "div", "mul", "add", "addcdiv", "addcmul", "exp", "lerp", "pow", "rsqrt", "sigmoid", "tanh")
_ENOUGH_SAMPLES = 20
_ENOUGH_OPERATORS = 8
"""To say what most of them do."""
_ALONE = 0.9
"""Of its wall time that the thread ran; of less, others took the rest, early and late not alike."""
_BEYOND_DOUBT = 6
"""Times as long a call late as early: a machine that others use as well has made calls four times as long."""
_A_FEW_TURNS_NS = 50_000_000
"""Of wall time: less is a few calls that stood in line for a core, 3 to 20 ms each time."""
_ONE_IN_20 = 1.64
"""Standard errors that a change exceeds by chance in one case of 20."""
_GAIN = 0.08
"""Of the step: what is gained where the path stays as it was early; less is a machine in use."""


def _in_programs(case: Case) -> set[str]:
    """Operations that XLA runs inside of programs."""
    tree = case.tree
    return {tree.text("name", frame) for frame in np.unique(tree.frame_of[case.in_pool]).tolist()}


@dataclass(frozen=True)
class _Path:
    row: Mapping[str, Any]
    first: float
    last: float
    calls: float
    """Of calls (a step, or of all) late to early; 1 for samples."""
    sure: float = 1.0
    """What of the change is beyond chance in 19 of 20 cases, where few samples tell it."""


class Grows(Rule):
    name = "grows"
    asks = "Does a call path take more and more time in the course of the run?"
    options = (
        Option(
            "factor", 60, "%", "more late than early, relative to the run's other paths; a busy machine slows all paths"
        ),
        Option("share", 10, "%", "of the late part of the run"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        told = case.profile.meta.get("growth")
        rows = [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []
        if not rows:
            raise CannotTell("the run was too short to compare its early and late parts")
        estimated = _in_programs(case)
        rows = [one for one in rows if one.get("what") not in estimated]
        if not rows:
            raise CannotTell("operations of compiled programs are timed now and then, not early and late")
        contended = running_share(case.profile, int(case.analysis.scopes.thread[case.loop.anchors[0]])) < _ALONE
        paths = [
            one for row in rows if (one := _read(row, sampled=contended and not _larger_inputs(case, row))) is not None
        ]
        late = sum(one.last * one.row["calls"][-1] for one in paths)
        if late <= 0:
            return self.more_calls(case, rows, values)
        everything = _all_by_samples(rows) if contended else paths
        found = []
        for one in paths:
            share = one.last * one.row["calls"][-1] / late
            factor = one.last / one.first / _others(everything, one) if one.first > 0 else 0.0
            by_calls = one.calls >= 1 + values["factor"]
            if share >= values["share"] and (factor * one.sure >= 1 + values["factor"] or by_calls):
                found.append((one, factor, share))
        if found and _inputs_grow(rows, values["factor"]):
            return []
        found = [item for item in found if not _of_a_cache(case, item[0].row)]
        found = [item for item in found if not _as_large_as_before(case, item[0], item[1], contended=contended)]
        if contended:
            found = [item for item in found if item[0].calls > item[1] or _more_ns(item[0].row) >= _A_FEW_TURNS_NS]
        found = [item for item in found if case.share(_spared_ns(case, *item)) >= _GAIN]
        found.sort(key=lambda item: -item[2] * (1 - 1 / max(item[1], item[0].calls, 1.01)))
        return [self._finding(case, found)] if found else self.more_calls(case, rows, values)

    def more_calls(self, case: Case, rows: Sequence[Mapping[str, Any]], values: Values) -> list[Finding]:
        """A function that calls more operators in each part of the run than in the one before: no load of the machine
        makes it so."""
        paths = [one for one in (_read(row, sampled=False) for row in rows if row.get("what")) if one is not None]
        late = sum(one.row["ns"][-1] for one in paths)
        more = [one for one in paths if one.calls >= 1 + values["factor"] and ever_more(one.row)]
        functions: dict[tuple[str, str], list[_Path]] = {}
        for one in more:
            functions.setdefault((str(one.row["file"]), str(one.row["function"])), []).append(one)
        if not functions or late <= 0:
            return []
        (file, function), found = max(functions.items(), key=lambda item: sum(one.row["ns"][-1] for one in item[1]))
        share = sum(one.row["ns"][-1] for one in found) / late
        often = max(found, key=lambda one: int(one.row["ns"][-1]))
        gain = share * (1 - 1 / often.calls)
        if share < values["share"] or gain < _GAIN:
            return []
        return [
            Finding(
                self.name,
                Severity.WARNING if often.calls >= 2 else Severity.INFO,
                f"{function} calls {times(often.calls)} times as many operators a step late in the run as early",
                case.gain(gain * case.total_ns, (0.3, 0.8, 1), "measured: the number of its calls early in the run"),
                (),
                (case.line_at(file, int(often.row["line"]), function),),
                (f"{percent(share)} of the operators' time in the late part of the run, {often.row['what']} first",),
                "Find what the number of calls depends on: hooks or callbacks that are registered again and never "
                "removed, a list, a history or a text that grows with the steps.",
                self.learn_more,
                gain,
            )
        ]

    def _finding(self, case: Case, found: list[tuple[_Path, float, float]]) -> Finding:
        one, factor, share = found[0]
        row = one.row
        what = str(row["what"]) or str(row["function"])
        more = max(factor, one.calls)
        line = case.line_at(str(row["file"]), int(row["line"]), str(row["function"]))
        alike = [str(path.row["what"]) for path, *_ in found if path.row["line"] == row["line"] and path.row["what"]]
        names = [name.rpartition("::")[2].rstrip("_") for name in alike] or [what]
        spared = _spared_ns(case, one, factor, share)
        if one.calls > factor:
            title = f"{what} is called {times(one.calls)} times as often late in the run as early"
            remedy = "Find what the number of calls depends on: a list, a history or a text that grows with the steps."
        elif row["what"] and class_of_operator(what) in ("element-wise", "optimizer") and set(names) & set(_DENORMAL):
            named = listed(sorted(set(alike)))
            title = f"{named} takes {times(factor)} times as long late in the run as early, with as many calls"
            remedy = (
                "Numbers that have become denormal (smaller than 1e-38) are 10 to 100 times slower on a CPU: call "
                "torch.set_flush_denormal(True) at the start; otherwise find the input that grows."
            )
        else:
            title = f"{what} takes {times(factor)} times as long late in the run as early, call by call"
            remedy = instead_at(case, str(row["file"]), int(row["line"]), str(row["what"])) or (
                "Its input grows with the steps: keep the result for the part that has not changed and add what is new."
                if _larger_inputs(case, row)
                else "Find what its time depends on: an input, a list, a history or a text that grows with the steps."
            )
        return Finding(
            self.name,
            Severity.WARNING if more >= 2 else Severity.INFO,
            title,
            case.gain(spared, (0.3, 0.8, 1), "measured: what it took early in the run"),
            (),
            (line,),
            (
                f"{duration(one.first)} a call early, {duration(one.last)} late; the run's other paths changed by "
                f"{percent(abs(_usual_change(found)))}",
                f"{percent(share)} of the late part of the run",
            ),
            remedy,
            self.learn_more,
            case.share(spared),
        )


def _spared_ns(case: Case, one: _Path, factor: float, share: float) -> float:
    """What a path would spare over all steps, had it stayed as it was early: of what it takes in the late part, as far
    as steps are known there; else of the operators' time. Never more than the path took."""
    grown = 1 - 1 / max(factor, one.calls, 1.01)
    steps = one.row["steps"][-1]
    late_ns = one.row["ns"][-1] / steps * case.loop.steps if steps else share * case.loop.work_ns * case.loop.steps
    return float(min(late_ns, case.total_ns) * grown)


def _larger_inputs(case: Case, row: Mapping[str, Any]) -> bool:
    """Whether shapes say that a path's calls do more and more, whoever else uses the machine."""
    what = str(row.get("what", ""))
    return bool(what and inputs_grow(case, str(row.get("file", "")), int(row.get("line", 0)), what))


def _of_a_cache(case: Case, row: Mapping[str, Any]) -> bool:
    """Whether it is attention of few new positions to all earlier ones, whose keys and values are kept already: it
    grows with the text."""
    what = str(row["what"])
    place = at_line(case, str(row["file"]), int(row["line"]), what)
    if place is None or class_of_operator(what) != "attention":
        return False
    calls = case.tree.exclusive("call_time").count
    new = every = 0
    for at in place.mine.tolist():
        shapes = [one for one in tensor_shapes(case, at) if len(one) > 2]
        every += int(calls[at])
        new += int(calls[at]) if len(shapes) > 1 and shapes[0][-2] < shapes[1][-2] else 0
    return 2 * new > every


def _as_large_as_before(case: Case, one: _Path, factor: float, *, contended: bool) -> bool:
    """Whether a path's calls take longer although shapes say that they do the same: then others used the machine, but
    for numbers that may have become denormal."""
    row = one.row
    what = str(row["what"])
    if not what or one.calls > factor:
        return False
    denormal = class_of_operator(what) in ("element-wise", "optimizer") and not contended
    return not denormal and inputs_grow(case, str(row["file"]), int(row["line"]), what) is False


def _inputs_grow(rows: Sequence[Mapping[str, Any]], factor: float) -> bool:
    """Whether on most lines the operators take longer by call: the run's batches have become larger (texts sorted by
    length), or the machine slower, and no one path has grown."""
    changes: dict[tuple[str, int], list[bool]] = {}
    for row in rows:
        calls, ns = row.get("calls"), row.get("ns")
        if row.get("what") and isinstance(calls, list) and isinstance(ns, list) and min(calls[0], calls[-1]) >= 5:
            longer = ns[-1] / calls[-1] >= (1 + factor) * ns[0] / calls[0]
            changes.setdefault((str(row.get("file")), int(row.get("line", 0))), []).append(longer)
    lines = [2 * sum(one) > len(one) for one in changes.values()]
    return sum(map(len, changes.values())) >= _ENOUGH_OPERATORS and 2 * sum(lines) > len(lines)


def _usual_change(found: list[tuple[_Path, float, float]]) -> float:
    one, factor, _ = found[0]
    return one.last / one.first / factor - 1 if one.first > 0 and factor > 0 else 0.0


def _read(row: Mapping[str, Any], *, sampled: bool) -> _Path | None:
    """`sampled`: by CPU time, since wall time says more of who else used the machine; by wall time where few samples
    were taken and the growth is beyond doubt."""
    if sampled and row.get("what"):
        numbers = row.get("samples")
        if isinstance(numbers, list) and min(numbers[:1] + numbers[-1:], default=0) >= _ENOUGH_SAMPLES:
            row = {**row, "ns": row.get("sampled_ns")}
        elif not (ever_dearer(row) and _far_dearer(row)):
            return None
    steps, calls, ns = (row.get(name) for name in ("steps", "calls", "ns"))
    if not all(isinstance(one, list) and len(one) >= 2 for one in (steps, calls, ns)):
        return None
    assert isinstance(steps, list) and isinstance(calls, list) and isinstance(ns, list)
    python = not row.get("what")
    enough = _ENOUGH_SAMPLES if python else 5
    if calls[0] < enough or calls[-1] < enough:
        return None
    if python:  # of Python no calls are known: its time a step stands for one call
        if not steps[0] or not steps[-1]:
            return None
        row = {**row, "calls": steps}
        calls = steps
    rate = calls[-1] / calls[0] * steps[0] / steps[-1] if steps[0] and steps[-1] and not python else 1.0
    few = row["samples"] if sampled and row.get("ns") is row.get("sampled_ns") else ()
    sure = math.exp(-_ONE_IN_20 * math.sqrt(1 / few[0] + 1 / few[-1])) if few else 1.0
    return _Path(row, ns[0] / calls[0], ns[-1] / calls[-1], rate, sure)


def _all_by_samples(rows: Sequence[Mapping[str, Any]]) -> list[_Path]:
    """All operators by CPU time: of one alone there may be too few samples, of all together there are not."""
    found = []
    for row in rows:
        calls, ns = row.get("calls"), row.get("sampled_ns")
        if row.get("what") and isinstance(calls, list) and isinstance(ns, list) and min(calls[0], calls[-1]) > 0:
            found.append(_Path(row, ns[0] / calls[0], ns[-1] / calls[-1], 1.0))
    return found


def _far_dearer(row: Mapping[str, Any]) -> bool:
    calls, ns = row["calls"], row["ns"]
    return bool(ns[-1] * max(calls[0], 1) >= _BEYOND_DOUBT * ns[0] * max(calls[-1], 1))


def _more_ns(row: Mapping[str, Any]) -> float:
    """What the late calls took beyond what as many early ones did."""
    calls, ns = row["calls"], row["ns"]
    return float(ns[-1] - ns[0] * calls[-1] / max(calls[0], 1))


def _is_same(one: _Path, other: _Path) -> bool:
    return all(one.row.get(name) == other.row.get(name) for name in ("what", "file", "line", "function"))


def _others(paths: Sequence[_Path], without: _Path) -> float:
    """How the other paths changed: a machine that others use as well makes everything slower."""
    calls = [(one, one.row["calls"][-1]) for one in paths if not _is_same(one, without)]
    early = sum(one.first * number for one, number in calls)
    late = sum(one.last * number for one, number in calls)
    return float(np.clip(late / early, 0.5, 5.0)) if len(calls) >= 3 and early > 0 else 1.0
