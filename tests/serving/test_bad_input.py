"""What an engine's account makes of the unusual: each case is a sentence, and what is known is still shown."""

from __future__ import annotations

import copy
import json
from types import SimpleNamespace
from typing import Any

import pytest
from tests.analysis.drawn_engines import served

from leadline.capture.providers.engines import account as accounts
from leadline.capture.providers.engines.account import Account
from leadline.capture.providers.engines.request import Request
from leadline.capture.providers.engines.vllm_scheduler import SchedulerFollower
from leadline.engines import Engine, engines_of, together, words
from leadline.report import ReportOptions, build_report
from leadline.report.json_report import report_object
from leadline.report.text import render_text

SECOND = 1_000_000_000


def told(*records: dict[str, Any]) -> tuple[Engine, str]:
    engine = together(engines_of({"processes": [{"pid": 7, "engines": list(records)}]}))
    assert engine is not None
    return engine, "\n".join(words.facts(engine))


def test_two_engines_in_one_process_are_added_up() -> None:
    one = served("even")().meta["processes"][0]["engines"][0]
    engine, said = told(one, copy.deepcopy(one))
    assert engine.number == 120
    assert "2 engines, added up" in said
    assert engine.tokens_per_s == pytest.approx(2 * told(one)[0].tokens_per_s)


def test_requests_that_never_end_are_open_and_have_an_age() -> None:
    account = Account("vllm", "1")
    account.arrived(Request("waits for ever", account.began_ns - 3600 * SECOND, account.began_ns, 8))
    engine, said = told(account.facts())
    assert engine.open == 1
    assert engine.oldest_open_ns >= 3600 * SECOND
    assert "1 requests had not ended; the oldest of these came " in said


def test_more_open_requests_than_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "MOST_OPEN", 10)
    account = Account("vllm", "1")
    for number in range(25):
        account.arrived(Request(str(number), 0, 0, 8))
    engine, said = told(account.facts())
    assert (engine.open, engine.not_followed) == (10, 15)
    assert "15 requests came while 100,000 were open" in said


def test_memory_does_not_grow_with_requests() -> None:
    account = Account("vllm", "1")
    sizes = []
    for number in range(20_000):
        account.arrived(Request(str(number), number, number + 1, 8))
        account.scheduled(str(number), number + 2)
        account.first_token(str(number), number + 3)
        account.end(str(number), "stop", 4, 0, number + 9 + number % 977)
        if number in (2_000, 19_999):
            sizes.append(len(json.dumps(account.facts())))
    assert account.ended_count == 20_000
    assert sizes[1] < 1.3 * sizes[0]


def test_requests_from_before_are_counted() -> None:
    follower = SchedulerFollower(SimpleNamespace(), SimpleNamespace(flush_interval_s=5.0), lambda: None)  # type: ignore[arg-type]
    scheduler = _Scheduler()
    scheduler.requests = {"a": 1, "b": 2}
    assert follower._of(scheduler) is not None
    (account,) = follower.accounts()
    assert account.earlier == 2
    account.first_step_ns = 1
    _, said = told(account.facts() | {"open": 1})
    assert "2 requests came before measuring began" in said


class _Scheduler:
    requests: dict[str, int]


@pytest.mark.parametrize(
    "change",
    [
        {"steps": [1]},
        {"requests": {"ttft": {"count": -1}}},
        {"points": [[1, 2]]},
        {"slowest": ["x"]},
        {"ended": 3, "open": "many", "serving_ns": -5},
        {"recent": 7, "version": None},
    ],
)
def test_a_record_that_makes_no_sense_costs_what_it_would_have_told(change: dict[str, Any]) -> None:
    profile = served("even")()
    profile.meta["processes"][0]["engines"][0].update(change)
    report = build_report(profile, ReportOptions(), "x.leadline")
    json.dumps(report_object(report), allow_nan=False)
    assert "Serving" in render_text(report)
