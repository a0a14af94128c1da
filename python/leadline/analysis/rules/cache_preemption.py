"""`cache_preemption`: the key-value cache is full, so requests lose what was computed for them."""

from __future__ import annotations

from leadline.analysis.rules.base import Case, Finding, Option, Rule, Severity, Values
from leadline.analysis.rules.serving import engine_of
from leadline.units import duration, number, percent


class CachePreemption(Rule):
    name = "cache_preemption"
    asks = "Do requests lose their key-value cache because it is full?"
    options = (Option("share", 2, "%", "preemptions per request; each one computes a prompt again"),)

    def check(self, case: Case, values: Values) -> list[Finding]:
        engine = engine_of(case)
        requests = engine.number + engine.open
        share = engine.preemptions / max(requests, 1)
        if not engine.preemptions or share < values["share"]:
            return []
        lost = engine.of("preempted")
        evidence = [f"{number(engine.preemptions)} preemptions of {number(requests)} requests"]
        if engine.cache.count:
            evidence.append(
                f"the cache is {percent(engine.cache.quantile(0.5) / 1000)} full (p50), "
                f"{percent(engine.cache.most / 1000)} at most"
            )
        if lost.count:
            evidence.append(f"a preempted request waits {duration(lost.quantile(0.5))} (p50) for a place")
        return [
            Finding(
                self.name,
                Severity.WARNING,
                f"The key-value cache is too small: {number(engine.preemptions)} times a request was preempted",
                case.no_gain("the cost of computing again depends on the prompts"),
                (),
                (),
                tuple(evidence),
                "Give the cache more memory, or let fewer sequences run at once (vLLM: gpu_memory_utilization, "
                "VLLM_CPU_KVCACHE_SPACE, max_num_seqs, max_model_len, a cache of 8 bits).",
                self.learn_more,
                min(share, 1.0),
            )
        ]
