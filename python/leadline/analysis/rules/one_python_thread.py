"""`one_python_thread`: one thread of the server runs Python all the time, so nothing else makes it faster."""

from __future__ import annotations

import numpy as np

from leadline.analysis.engine_phases import START_UP
from leadline.analysis.functions import METRIC, imports
from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.serving import engine_of, words_take
from leadline.units import duration, percent

_POLLING = ("waiting for the engine", "waiting for the workers", "no work")


class OnePythonThread(Rule):
    name = "one_python_thread"
    asks = "Is the server limited by one thread that runs Python?"
    options = (
        Option("share", 80, "%", "of the time that the engine serves; waiting threads use the rest of the core"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        engine, tree, scopes = engine_of(case), case.tree, case.analysis.scopes
        if engine.name == "transformers":  # the program itself calls it, so its Python is the program's
            return []
        samples = np.maximum(tree.exclusive(METRIC).sum, 0)
        if not samples.any():
            raise CannotTell("Python was not sampled (leadline run --cpu-sample)")
        python = (scopes.inner < 0) & (scopes.thread >= 0) & ~imports(tree) & ~case.in_phase(START_UP)
        for phase in _POLLING:
            python &= ~case.in_phase(phase)
        sums = np.bincount(scopes.thread[python], weights=samples[python], minlength=1)
        thread = int(sums.argmax())
        share = min(float(sums[thread]) / max(engine.serving_ns / engine.count, 1), 1.0)
        if share < values["share"]:
            return []
        mine = python & (scopes.thread == thread)
        rows = case.by_line(mine, np.where(mine, samples, 0))
        name = next((one.name for one in case.profile.threads if one.node.row == thread), "") or "a thread"
        evidence = [f"it ran Python for {duration(float(sums[thread]))} of {duration(engine.serving_ns)} (sampled)"]
        evidence += words_take(case, thread)
        return [
            Finding(
                self.name,
                Severity.WARNING,
                f"One Python thread ({name}) is busy for {percent(share)} of the time that the server serves",
                case.no_gain("how much faster the engine could be fed is not known from one run"),
                tuple(rows[0].rows[:20].tolist()) if rows else (),
                case.lines([one.row for one in rows[:3]]),
                tuple(evidence),
                "Give the work to more processes (vLLM: api_server_count, data_parallel_size), send tokens in larger "
                "pieces (stream_interval), log less.",
                self.learn_more,
                share,
            )
        ]
