"""`graph_padding`: captured graphs are larger than the batches that run in them."""

from __future__ import annotations

from leadline.analysis.rules.base import CannotTell, Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.serving import engine_of
from leadline.units import number, percent


class GraphPadding(Rule):
    name = "graph_padding"
    asks = "Are batches padded to much larger captured graphs?"
    options = (
        Option("share", 20, "%", "of the tokens that graphs compute"),
        Option("steps", 50, "1", "that ran in graphs; fewer may be only the start or end of a load"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        engine = engine_of(case)
        padding, tokens = engine.batch.get("padding"), engine.batch.get("graph_tokens")
        if padding is None or tokens is None:
            raise CannotTell("the engine captures no graphs")
        share = padding.total / max(tokens.total, 1)
        if tokens.count < values["steps"] or share < values["share"]:
            return []
        return [
            Finding(
                self.name,
                Severity.WARNING,
                f"{percent(share)} of the tokens that captured graphs compute are padding",
                case.no_gain("a smaller graph is not always faster by this share"),
                (),
                (),
                (
                    f"a batch has {number(round((tokens.total - padding.total) / tokens.count))} tokens, its graph "
                    f"{number(round(tokens.total / tokens.count))} (mean of {number(tokens.count)} steps)",
                    "sizes are those that the engine was configured to capture",
                ),
                "Capture graphs of the sizes that occur (vLLM: cudagraph_capture_sizes), or let more requests run at "
                "once.",
                self.learn_more,
                share,
            )
        ]
