"""`hotspot`: one call path takes a large part of the step (DeepContext, section 4.3, analysis 1)."""

from __future__ import annotations

import numpy as np

from leadline.analysis.compilers import compilers
from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.collectives import collectives
from leadline.analysis.rules.words import duration, module, operator, percent, times

_ADVICE = (
    (
        ("backwardhook",),
        "What runs here are hooks of modules (register_full_backward_hook): look at what stands below with `leadline "
        "report --focus`, and leave out those that only look.",
    ),
    (
        ("sort", "topk", "unique", "nonzero", "cumsum"),
        "Sorting and selecting are slow on every device: ask whether the step needs them, on all elements, every time.",
    ),
)
_SMALL_NS = 30_000
"""An operator that takes no longer is mostly called, not computed."""
_CALLED = (
    "These are many short calls: what they take is calling, not computing. Give each more to do (a larger batch, "
    "several sequences at a time), or let {compiler} make fewer of them."
)
_COMPILED = (
    "It is compiled already, and each run of it is short: give a run more to do (a larger batch, several steps in one "
    "`lax.scan` or `tf.while_loop`), so that less of the loop is calling programs."
)
_ELSE = (
    "Look at what stands below it with `leadline report --focus`; whether it is slower than it must be was not "
    "measured (`leadline why --shapes` compares it with what this machine can do)."
)


class Hotspot(Rule):
    name = "hotspot"
    asks = "Which call paths take a large part of the step?"
    general = True
    options = (
        Option("share", 20, "%", "halving less than a fifth of the step gains less than a tenth"),
        Option("most", 2, "1", "a list of everything large is a table, which `leadline report` has"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        device = case.has_device
        time = case.gpu_time if device else case.time_and_samples
        total = int(time.sum()) if device else case.total_ns
        time = np.where(collectives(case), 0, time)  # communication is a question of its own
        groups = case.grouped(time > 0, time, case.analysis.hot_paths.group)
        if not total:
            return []
        made = []
        for group in groups[: int(values["most"])]:
            share = group.value / total
            if share < values["share"]:
                break
            made.append(self._finding(case, group.row, group.value, share, np.sort(group.rows).tolist(), device))
        return made

    def _finding(self, case: Case, row: int, ns: int, share: float, rows: list[int], device: bool) -> Finding:
        scopes = case.analysis.scopes
        what = operator(case.name(int(scopes.outer[row]))) or case.name(int(scopes.phase[row])) or _python(case, row)
        inside = case.module(row)
        where = f" in {module(inside)}" if inside else ""
        phase = case.name(int(scopes.phase[row]))
        back = f" ({phase})" if phase not in ("", "forward", what) else ""
        of = "the device time" if device else "the step"
        begun = np.unique(scopes.outer[rows])  # an operator that calls others is one call
        calls = int(case.calls[begun[begun >= 0]].sum())
        each = ns / max(calls, 1)
        small = not device and 0 < each < _SMALL_NS
        known = next((text for keys, text in _ADVICE if any(key in what.lower() for key in keys)), _ELSE)
        return Finding(
            self.name,
            Severity.INFO,
            f"{what}{back}{where} takes {percent(share)} of {of}",
            case.gain(ns, (0, 0, 1), "bound: all the time of this path, were it gone (Amdahl)"),
            tuple(rows[:20]),
            case.lines([row]),
            (
                f"{duration(case.per_step(ns))} a step of {duration(case.loop.step_ns)}",
                _paths(len(rows)) + (f", {_calls(case.per_step(calls))} a step of {duration(each)}" if calls else ""),
            ),
            self._advice(case, row, known, small=small),
            self.learn_more,
            share,
        )

    def _advice(self, case: Case, row: int, known: str, *, small: bool) -> str:
        if not small:
            return known
        outer = case.analysis.scopes.outer[row]
        detail = case.tree.node(int(outer)).detail if outer >= 0 else {}
        if "hlo" in detail or "node" in detail:  # inside of a program of XLA, or a graph of TensorFlow
            return _COMPILED
        return _CALLED.format(compiler=compilers(case.profile.meta))


def _python(case: Case, row: int) -> str:
    """What is known of Python without an operator: by samples, so it is the line's function."""
    line = case.line(row)
    return f"{line.function or line.short} in Python" if line else "one line"


def _calls(number: float) -> str:
    return f"{times(number)} call{'' if times(number) == '1' else 's'}"


def _paths(number: int) -> str:
    return f"{number:,} call path{'s' if number != 1 else ''}"
