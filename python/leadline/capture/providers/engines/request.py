"""One request on its way through an engine: what it waited for, and its share of the engine's steps."""

from __future__ import annotations

from typing import Any

MOST_KEPT = 20
"""Of the slowest, kept whole."""
_LONGEST_NAME = 80


class Stretches:
    """Sums over all steps of an engine; a request's part is what they grew by while it was in that state, so a step
    costs the same however many requests are in it."""

    __slots__ = ("gap_ns", "per_token_ns", "steps_ns", "with_prefill_ns")

    def __init__(self) -> None:
        self.gap_ns = 0
        self.steps_ns = 0
        self.with_prefill_ns = 0
        self.per_token_ns = 0.0

    def step(self, kind: str, took_ns: int, tokens: int) -> None:
        self.steps_ns += took_ns
        if kind != "decode":
            self.with_prefill_ns += took_ns
        if tokens:
            self.per_token_ns += took_ns / tokens


class Request:
    """`arrived_ns`: when the server had it; `queued_ns`: when the engine had it, both on CLOCK_MONOTONIC."""

    __slots__ = (
        "arrived_ns",
        "cached_tokens",
        "ended_ns",
        "first_ns",
        "from_gap_ns",
        "from_prefill_ns",
        "from_token_ns",
        "gap_ns",
        "logprobs",
        "lost_ns",
        "lost_since_ns",
        "name",
        "odd_arrival",
        "other_prefill_ns",
        "output_tokens",
        "preemptions",
        "prompt_logprobs",
        "prompt_tokens",
        "queued_ns",
        "reason",
        "scheduled_ns",
        "share_ns",
        "totals",
        "trace",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        arrived_ns: int,
        queued_ns: int,
        prompt_tokens: int,
        *,
        logprobs: bool = False,
        prompt_logprobs: bool = False,
        trace: str = "",
    ) -> None:
        self.name = name
        self.trace = trace  # of OpenTelemetry, where its client has one
        self.odd_arrival = arrived_ns > queued_ns  # the server's clock is not the engine's
        self.arrived_ns = min(arrived_ns, queued_ns)
        self.queued_ns = queued_ns
        self.prompt_tokens = prompt_tokens
        self.logprobs = logprobs
        self.prompt_logprobs = prompt_logprobs
        self.scheduled_ns = self.first_ns = self.ended_ns = 0
        self.output_tokens = self.cached_tokens = self.preemptions = 0
        self.reason = ""
        self.lost_ns = self.lost_since_ns = 0
        self.share_ns = 0.0
        self.gap_ns = self.other_prefill_ns = 0
        self.from_gap_ns = self.from_prefill_ns = 0
        self.from_token_ns = -1.0
        self.totals = Stretches()

    def scheduled(self, now_ns: int) -> None:
        if not self.scheduled_ns:
            self.scheduled_ns = now_ns
        if self.lost_since_ns:
            self.lost_ns += now_ns - self.lost_since_ns
            self.lost_since_ns = 0
            if self.first_ns:
                self._decodes()

    def preempted(self, now_ns: int) -> None:
        self.preemptions += 1
        if not self.lost_since_ns:
            self._pauses()
            self.lost_since_ns = now_ns

    def prefilled(self, tokens: int, took_ns: int, of: int) -> None:
        """Part of its prompt was in a step of `of` tokens."""
        self.share_ns += took_ns * tokens / max(of, 1)

    def first_token(self, now_ns: int) -> None:
        if not self.first_ns:
            self.first_ns = now_ns
            self._decodes()

    def end(self, reason: str, output_tokens: int, cached_tokens: int, now_ns: int) -> None:
        if self.lost_since_ns:
            self.lost_ns += now_ns - self.lost_since_ns
        else:
            self._pauses()
        self.ended_ns = now_ns
        self.reason = reason
        self.output_tokens = output_tokens
        self.cached_tokens = cached_tokens
        self.totals = Stretches()

    def _decodes(self) -> None:
        """From now on it is in the steps, one token in each."""
        sums = self.totals
        self.from_gap_ns, self.from_prefill_ns, self.from_token_ns = (
            sums.gap_ns,
            sums.with_prefill_ns,
            sums.per_token_ns,
        )

    def _pauses(self) -> None:
        if self.from_token_ns < 0:
            return
        sums = self.totals
        self.gap_ns += sums.gap_ns - self.from_gap_ns
        self.other_prefill_ns += sums.with_prefill_ns - self.from_prefill_ns
        self.share_ns += sums.per_token_ns - self.from_token_ns
        self.from_token_ns = -1.0

    @property
    def took_ns(self) -> int:
        return self.ended_ns - self.arrived_ns

    def values(self) -> dict[str, int]:
        """What is known of it, for distributions over all; what it never reached is left out."""
        made = {"e2e": self.took_ns, "prompt_tokens": self.prompt_tokens, "cached_tokens": self.cached_tokens}
        if self.scheduled_ns:
            made["queue"] = self.scheduled_ns - self.arrived_ns
        if self.first_ns:
            made["ttft"] = self.first_ns - self.arrived_ns
            made["prefill"] = self.first_ns - self.scheduled_ns
            made["decode"] = self.ended_ns - self.first_ns
            made["output_tokens"] = self.output_tokens
            if self.output_tokens > 1:
                made["tpot"] = made["decode"] // (self.output_tokens - 1)
            made |= {"other_prefill": self.other_prefill_ns, "between_steps": self.gap_ns}
        if self.preemptions:
            made["preempted"] = self.lost_ns
        made["share"] = int(self.share_ns)
        return made

    def facts(self, began_ns: int) -> dict[str, Any]:
        """Whole, for the slowest. `at_ms`: its arrival, since the engine was first seen."""
        return {
            "id": self.name[:_LONGEST_NAME],
            **({"trace": self.trace} if self.trace else {}),
            "at_ms": (self.arrived_ns - began_ns) // 1_000_000,
            **{name: value for name, value in self.values().items() if name != "e2e"},
            "e2e": self.took_ns,
            "reason": self.reason,
            "preemptions": self.preemptions,
        }
