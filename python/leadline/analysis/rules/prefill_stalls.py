"""`prefill_stalls`: requests that decode wait while another request's prompt is computed in one piece."""

from __future__ import annotations

from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.serving import engine_of
from leadline.units import duration, number, percent


class PrefillStalls(Rule):
    name = "prefill_stalls"
    asks = "Do prompts of other requests hold up requests that decode?"
    options = (
        Option("share", 25, "%", "of the time that requests decode; batching always mixes some prefill with decoding"),
        Option("times", 3, "1", "the p99 of a step with a prompt over the p50 of a decode step"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        engine = engine_of(case)
        stalled, decode = engine.share_of("other_prefill", "decode"), engine.steps.get("decode")
        prompts = [engine.steps[kind] for kind in ("prefill", "mixed") if kind in engine.steps]
        if decode is None or not prompts or stalled < values["share"]:
            return []
        tail, usual = max(one.quantile(0.99) for one in prompts), decode.quantile(0.5)
        if tail < values["times"] * usual:
            return []
        return [
            Finding(
                self.name,
                Severity.WARNING,
                f"Requests that decode spend {percent(stalled)} of that time in steps with another request's prompt",
                case.no_gain(
                    "prompts must be computed; smaller chunks make token times more even, not shorter in total"
                ),
                (),
                (),
                (
                    f"a step with a prompt takes up to {duration(tail)} (p99), a decode step {duration(usual)} (p50)",
                    f"{number(sum(one.count for one in prompts))} of {number(engine.number_of_steps)} steps had one",
                ),
                "Compute prompts in smaller chunks together with decoding: turn on chunked prefill, and lower the "
                "limit of tokens in a step (vLLM: enable_chunked_prefill, max_num_batched_tokens).",
                self.learn_more,
                stalled,
            )
        ]
