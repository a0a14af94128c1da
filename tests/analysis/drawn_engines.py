"""Engines with one problem each, by a clock of their own, as the capture's account would have them."""

from __future__ import annotations

from collections.abc import Callable

from tests.analysis.test_findings import training

from leadline.capture.providers.engines.account import Account
from leadline.capture.providers.engines.request import Request
from leadline.profiles.profile import Profile

MS = 1_000_000
SECOND = 1000 * MS
AT = "python main @ /home/ada/train.py:43"
SERVED = {
    "prefill_stalls": ("stalled", "Requests that decode spend"),
    "cache_preemption": ("preempted", "The key-value cache is too small"),
    "growing_queue": ("growing", "The queue grows to 60 requests"),
    "scheduler_gap": ("paused", "The engine pauses between steps"),
    "logprobs_for_all": ("logprobs", "Log-probabilities are asked of"),
}
"""By rule: the problem to draw, and words of the finding's title."""


def served(problem: str) -> Callable[[], Profile]:
    """Sixty requests of 20 tokens, four at a time, with `problem` ("even": none)."""

    def made() -> Profile:
        profile = training(AT, f"  operator aten::mm | time={20 * MS}/20 call_time={20 * MS}/20")
        profile.meta["processes"] = [{"pid": 1, "engines": [_account(problem).facts()]}]
        return profile

    return made


def _account(problem: str) -> Account:
    account = Account("vllm", "1")
    account.began_ns = now = 0
    for turn in range(15):
        names = [f"{turn}.{row}" for row in range(4)]
        for name in names:
            account.arrived(Request(name, now, now, 100, logprobs=problem == "logprobs"))
            account.scheduled(name, now)
        waiting = 4 * turn + 4 if problem == "growing" else 2
        prompt = 12 * MS
        now = _step(account, "prefill", now, prompt, [(name, 100) for name in names], waiting)
        for name in names:
            account.first_token(name, now)
        for token in range(19):
            if problem == "paused":
                now += 5 * MS
            if problem == "stalled" and token % 5 == 0:
                now = _step(account, "mixed", now, 200 * MS, [], waiting)
            if problem == "preempted" and token == 9:
                account.preempted(names[3], now)
                account.scheduled(names[3], now + 10 * MS)
            now = _step(account, "decode", now, 10 * MS, [], waiting)
        for name in names:
            account.end(name, "length", 20, 0, now)
        now += SECOND  # no work, and time for another point of the series
    return account


def _step(account: Account, kind: str, now: int, took: int, prefills: list[tuple[str, int]], waiting: int) -> int:
    account.step_begins(now)
    account.step(
        kind,
        took,
        now + took,
        sequences=4,
        prefill_tokens=sum(tokens for _, tokens in prefills),
        decode_tokens=4,
        prefills=prefills,
        running=4,
        waiting=waiting,
        cache=0.5,
    )
    return now + took
