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
    "prefill_stalls": ("stalled", "Requests that decode spend", 0),
    "cache_preemption": ("preempted", "The key-value cache is too small", 0),
    "growing_queue": ("growing", "The queue grows to 60 requests", 0),
    "scheduler_gap": ("paused", "The engine pauses between steps", 0),
    "one_python_thread": ("one thread", "One Python thread (MainThread) is busy for", 43),
    "tokenising": ("tokenising", "Converting text to tokens and back occupies one thread", 0),
    "sampler_synchronisation": ("sampler", "Engine steps wait", 43),
    "graph_padding": ("padded", "of the tokens that captured graphs compute are padding", 0),
    "logprobs_for_all": ("logprobs", "of the requests ask for log-probabilities", 0),
}
"""By rule: the problem to draw, words of the finding's title, and its line (0: none)."""


def served(problem: str) -> Callable[[], Profile]:
    """Sixty requests of 20 tokens, four at a time, with `problem` ("even": none)."""

    def made() -> Profile:
        profile = training(AT, f"  operator aten::mm | time={20 * MS}/20 call_time={20 * MS}/20", *_places(problem))
        profile.meta["processes"] = [{"pid": 1, "engines": [_account(problem).facts()]}]
        return profile

    return made


def _places(problem: str) -> list[str]:
    """What the tree has of serving for 18 s: Python of a handler, text and tokens, a wait in the sampler."""
    busy, text, wait = ((17 if problem == name else 1) * SECOND for name in ("one thread", "tokenising", "sampler"))
    return [
        f"  python handle @ /home/ada/server.py:43 | cpu_sample={busy}/1000",
        f"    phase tokenising | time={text}/100 call_time={text}/100",
        f"  phase sampling | time={wait // 10}/100 call_time={wait // 10}/100",
        f"    operator aten::item | time={wait // 10}/100 call_time={wait // 10}/100 sync_time={wait // 10}/100",
    ]


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
            now = _step(account, "decode", now, 10 * MS, [], waiting, 8 if problem == "padded" else 4)
        for name in names:
            account.end(name, "length", 20, 0, now)
        now += SECOND  # no work, and time for another point of the series
    return account


def _step(
    account: Account, kind: str, now: int, took: int, prefills: list[tuple[str, int]], waiting: int, graph: int = 4
) -> int:
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
        graph_tokens=graph if kind == "decode" else 0,
    )
    return now + took
