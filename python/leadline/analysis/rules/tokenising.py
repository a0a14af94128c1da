"""`tokenising`: turning text into tokens and back holds a thread that requests wait for."""

from __future__ import annotations

import numpy as np

from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.serving import TEXT_PHASES, engine_of, words_take
from leadline.units import percent


class Tokenising(Rule):
    name = "tokenising"
    asks = "Does converting text to tokens and back block a thread that requests wait for?"
    options = (Option("share", 20, "%", "of the time that the engine serves, on one thread"),)

    def check(self, case: Case, values: Values) -> list[Finding]:
        engine, tree, threads = engine_of(case), case.tree, case.analysis.scopes.thread
        time = np.maximum(tree.exclusive("time").sum, 0)
        inside = np.zeros(len(tree), np.bool_)
        for phase in TEXT_PHASES:
            inside |= case.in_phase(phase)
        inside &= threads >= 0
        if not inside.any():
            return []
        sums = np.bincount(threads[inside], weights=time[inside])
        thread = int(sums.argmax())
        share = min(float(sums[thread]) / max(engine.serving_ns / engine.count, 1), 1.0)
        if share < values["share"]:
            return []
        return [
            Finding(
                self.name,
                Severity.WARNING,
                f"Converting text to tokens and back occupies one thread for {percent(share)} of the time that the "
                "server serves",
                case.no_gain("requests on that thread wait for each other"),
                (),
                (),
                tuple(words_take(case, thread)),
                "Let clients send token numbers, use a tokenizer in Rust (use_fast), give the work to threads or "
                "their own processes (vLLM: renderer_num_workers, api_server_count).",
                self.learn_more,
                share,
            )
        ]
