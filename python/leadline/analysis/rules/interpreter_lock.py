"""`interpreter_lock`: other Python threads of the process hold the interpreter while the loop waits for it."""

from __future__ import annotations

import numpy as np

from leadline.analysis.calls_in_source import only_call
from leadline.analysis.columns import Mask
from leadline.analysis.functions import METRIC, imports
from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.feeding import fed_at, library_of
from leadline.analysis.waiting import METRIC as WAIT
from leadline.analysis.waiting import STATES, in_line_ns, states_of
from leadline.units import duration, percent

_WORTH = 0.1
"""Of the waits, of which a part is worth a word."""


class InterpreterLock(Rule):
    name = "interpreter_lock"
    asks = "Does the loop wait for the interpreter's lock (GIL) that other Python threads hold?"
    on_cpu = True
    options = (
        Option("share", 10, "%", "of the step; a thread that only logs or reads holds it for less"),
        Option(
            "holds",
            10,
            "%",
            "of a step that the other thread runs Python; a thread that runs less cannot hold the lock for long",
        ),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        tree, loop, threads = case.tree, case.loop, case.analysis.scopes.thread
        waits = np.maximum(tree.exclusive(WAIT).sum, 0)
        if not waits.any():
            raise CannotTell("waits of threads were not sampled (leadline run --wait 20)")
        mine = threads == threads[loop.anchors[0]]
        states = states_of(tree)
        held = states == STATES.index("gil")
        outside = case.on_own_thread & ~case.in_phase("data loading")
        ns = int(waits[outside & held].sum())
        share = case.share(ns)
        if share < values["share"]:
            return []
        python = self._of_others(case, mine)
        rows = case.by_line(python, np.where(python, tree.exclusive(METRIC).sum, 0))
        whole = int(tree.exclusive(METRIC).sum[python].sum())
        if not rows or case.share(whole) < values["holds"]:
            return []
        row = rows[0].row
        holder = next((one for one in case.profile.threads if one.node.row == threads[row]), None)
        name = holder.name if holder is not None and holder.name not in ("", "python", "python3") else "a thread"
        function = case.function(row)
        library = library_of(case, int(case.analysis.scopes.user[row]))
        feeds = fed_at(case, row, mine) if library else -1
        waiting = case.by_line(outside & held, waits)
        spared = min(in_line_ns(tree, case.on_own_thread), float(whole))
        of_core = " and its core, where the loop waits for one" if spared >= _WORTH * ns else ""
        return [
            Finding(
                self.name,
                Severity.WARNING,
                f"The loop waits {percent(share)} of the step for the interpreter (GIL), which {name} in the "
                f"background holds in {function}" + (f", code of {library}" if library else ""),
                case.no_gain("which line of the program gives that thread its work is not known")
                if library and feeds < 0
                else case.gain_sums(
                    (0.2 * ns, 0.7 * ns + 0.5 * spared, ns + spared), f"bound: the waits for it{of_core}, sampled"
                ),
                tuple(rows[0].rows[:20].tolist()),
                case.lines([*([feeds] if feeds >= 0 else []), row, *(one.row for one in waiting[:2])]),
                (
                    f"it runs Python for {duration(case.per_step(whole))} of a step's {duration(loop.step_ns)} "
                    "(sampled); only one thread of a process runs Python at a time",
                ),
                _instead(case, function, library, feeds),
                self.learn_more,
                share,
            )
        ]

    def _of_others(self, case: Case, mine: Mask) -> Mask:
        """Python, by samples, of threads of the same process beside the loop's."""
        scopes = case.analysis.scopes
        here = scopes.process == scopes.process[case.loop.anchors[0]]
        found: Mask = here & ~mine & (scopes.inner < 0) & (scopes.user >= 0) & ~imports(case.tree)
        return found & (case.tree.exclusive(METRIC).sum > 0)


def _instead(case: Case, function: str, library: str, feeds: int) -> str:
    """What to change: the program's own function, or what it hands to a library's. `feeds`: the node of that line."""
    if not library:
        return (
            f"Let {function} sleep between two iterations (threading.Event.wait), move it to its own process, or "
            "do its work in the loop every n-th step."
        )
    if feeds < 0:
        return f"Find which of the program's calls give {library}'s thread its work, and make them less often."
    called = only_call(case, feeds) or "this line"
    return (
        f"Call {called} only every n-th step, or with less data: a thread of {library} does its work at the same time."
    )
