"""`logprobs_for_all`: log-probabilities are asked of every request, which keeps logits of the whole vocabulary."""

from __future__ import annotations

from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.serving import engine_of
from leadline.units import number, percent


class LogprobsForAll(Rule):
    name = "logprobs_for_all"
    asks = "Do most requests ask for log-probabilities?"
    options = (
        Option("share", 80, "%", "of the requests; if only some requests need them, only those should ask"),
        Option("requests", 8, "1", "fewer may be a test"),
    )

    def check(self, case: Case, values: Values) -> list[Finding]:
        engine = engine_of(case)
        requests = engine.number + engine.open
        asked = max(engine.logprobs_requests, engine.prompt_logprobs_requests)
        share = asked / max(requests, 1)
        if requests < values["requests"] or share < values["share"]:
            return []
        of_prompts = engine.prompt_logprobs_requests / max(requests, 1) >= values["share"]
        return [
            Finding(
                self.name,
                Severity.WARNING if of_prompts else Severity.INFO,
                f"{percent(share)} of the requests ask for log-probabilities{' of prompts' if of_prompts else ''}",
                case.no_gain("what sampling and sending would save is not known from one run"),
                (),
                (),
                (
                    f"{number(engine.logprobs_requests)} of {number(requests)} requests ask for those of "
                    f"output tokens, {number(engine.prompt_logprobs_requests)} of prompt tokens",
                ),
                "Ask for log-probabilities only where they are read; those of prompts make the engine compute logits "
                "for every prompt token and keep prompts out of the prefix cache.",
                self.learn_more,
                0.1,
            )
        ]
