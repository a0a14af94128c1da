"""The account of an engine with known answers: a clock that the test sets, requests whose times are written down."""

from __future__ import annotations

from typing import Any

import pytest

from leadline.capture.providers.engines.account import MOST_POINTS, Account
from leadline.capture.providers.engines.recent import Recent
from leadline.capture.providers.engines.request import MOST_KEPT, Request
from leadline.capture.providers.engines.vllm_scheduler import trace_of
from leadline.engines import SlowRequest, engines_of, together
from leadline.engines.as_json import serving_object
from leadline.engines.waited import waited_for
from leadline.engines.words import slow_rows

MS = 1_000_000


def step(account: Account, kind: str, took: int, now: int, prefills: list[tuple[str, int]], decodes: int) -> None:
    account.step(
        kind,
        took * MS,
        now * MS,
        sequences=decodes + len(prefills),
        prefill_tokens=sum(tokens for _, tokens in prefills),
        decode_tokens=decodes,
        prefills=prefills,
        running=decodes,
        waiting=0,
        cache=0.25,
    )


def two_requests() -> Account:
    """`a` prefills alone, decodes; `b`'s prompt is in a step of 40 ms between; both end at 100 ms."""
    account = Account("vllm", "1")
    account.began_ns = 0
    account.arrived(Request("a", 0, 1 * MS, 30))
    account.step_begins(10 * MS)
    account.scheduled("a", 10 * MS)
    step(account, "prefill", 20, 30, [("a", 30)], 0)
    account.first_token("a", 30 * MS)
    account.arrived(Request("b", 30 * MS, 31 * MS, 39))
    account.step_begins(35 * MS)
    account.scheduled("b", 35 * MS)
    step(account, "mixed", 40, 75, [("b", 39)], 1)
    account.first_token("b", 75 * MS)
    account.step_begins(80 * MS)
    step(account, "decode", 20, 100, [], 2)
    account.end("a", "stop", 3, 0, 100 * MS)
    account.end("b", "length", 2, 8, 100 * MS)
    return account


def engine_of(*accounts: Account) -> Any:
    meta = {"processes": [{"pid": 7, "engines": [one.facts()]} for one in accounts]}
    return together(engines_of(meta))


def slow(account: Account, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in account.facts()["slowest"] if one["id"] == name)
    return found


def test_a_requests_times() -> None:
    a, b = slow(two_requests(), "a"), slow(two_requests(), "b")
    assert (a["queue"], a["prefill"], a["ttft"], a["decode"], a["e2e"], a["tpot"]) == tuple(
        value * MS for value in (10, 20, 30, 70, 100, 35)
    )
    assert a["queue"] + a["prefill"] + a["decode"] == a["e2e"]
    assert (b["queue"], b["ttft"], b["e2e"], b["cached_tokens"]) == (5 * MS, 45 * MS, 70 * MS, 8)


def test_what_a_decode_waited_for() -> None:
    a, b = slow(two_requests(), "a"), slow(two_requests(), "b")
    assert a["other_prefill"] == 40 * MS  # b's prompt
    assert a["between_steps"] == 10 * MS  # 30 to 35 and 75 to 80
    assert b["other_prefill"] == 0  # its own prompt is no other's


def test_shares_of_requests_add_up_to_the_steps() -> None:
    account = two_requests()
    a, b = slow(account, "a"), slow(account, "b")
    assert a["share"] == pytest.approx((20 + 40 / 40 + 20 / 2) * MS, abs=2)
    assert a["share"] + b["share"] == pytest.approx(80 * MS, abs=4)


def test_steps_gaps_and_time_without_work() -> None:
    engine = engine_of(two_requests())
    assert engine.serving_ns == 90 * MS
    assert engine.steps_ns == 80 * MS
    assert engine.gap.total == 10 * MS
    assert engine.no_work_ns == 0
    assert {kind: one.count for kind, one in engine.steps.items()} == {"prefill": 1, "mixed": 1, "decode": 1}


def test_no_request_no_gap() -> None:
    account = two_requests()
    account.step_begins(900 * MS)  # nobody waited
    assert account.gap.total == 10 * MS


def test_time_without_work_is_no_pause_between_steps() -> None:
    account = two_requests()
    account.arrived(Request("c", 900 * MS, 901 * MS, 5))
    account.step_begins(903 * MS)
    assert account.gap.total == 12 * MS
    step(account, "prefill", 20, 923, [("c", 5)], 0)
    engine = engine_of(account)
    assert engine.no_work_ns == 801 * MS


def test_a_preempted_request_waits_and_has_no_share_meanwhile() -> None:
    account = Account("vllm", "1")
    account.arrived(Request("a", 0, 0, 10))
    account.scheduled("a", 0)
    account.first_token("a", 10 * MS)
    account.preempted("a", 20 * MS)
    step(account, "decode", 30, 50, [], 1)  # another request's
    account.scheduled("a", 60 * MS)
    account.end("a", "stop", 5, 0, 100 * MS)
    one = slow(account, "a")
    assert (one["preempted"], one["preemptions"], one["share"]) == (40 * MS, 1, 0)
    assert account.facts()["preemptions"] == 1


def test_bounded_however_many_requests_and_steps() -> None:
    account = Account("vllm", "1")
    for number in range(3000):
        account.arrived(Request(str(number), number, number, 1))
        account.scheduled(str(number), number)
        account.first_token(str(number), number + 1)
        account.end(str(number), "stop", 1, 0, number * 2 + 2)
        step(account, "decode", 1, number * 2000, [], 1)
    facts = account.facts()
    assert len(facts["slowest"]) == MOST_KEPT
    assert [one["id"] for one in facts["slowest"]][:2] == ["2999", "2998"]
    assert len(facts["points"]) <= MOST_POINTS
    assert not account.open
    assert engine_of(account).number == 3000


def test_requests_that_never_end_are_told() -> None:
    account = Account("vllm", "1")
    account.arrived(Request("a", 0, 0, 10))
    engine = engine_of(account)
    assert (engine.open, engine.number) == (1, 0)
    assert engine.oldest_open_ns > 0


def test_an_arrival_behind_the_queue_is_another_clock() -> None:
    account = Account("vllm", "1")
    account.arrived(Request("a", 50, 10, 1))
    assert account.odd_arrivals == 1
    assert account.open["a"].arrived_ns == 10


def test_engines_add_up() -> None:
    both = engine_of(two_requests(), two_requests())
    assert (both.count, both.number, both.of("ttft").count) == (2, 4, 4)
    assert both.tokens_per_s == pytest.approx(2 * engine_of(two_requests()).tokens_per_s)


def test_the_last_minute_forgets_what_is_older() -> None:
    recent = Recent()
    second = 1_000_000_000
    recent.add(10 * second, {"ttft": 5}, 1)
    recent.tokens(10 * second, 600)
    recent.add(100 * second, {"ttft": 70}, 1)
    recent.tokens(100 * second, 60)
    now = recent.facts(110 * second)
    assert now["ttft"]["count"] == 1
    assert now["tokens"] == 60


@pytest.mark.parametrize(
    "values, name",
    [
        ({"e2e": 100, "queue": 90}, "queue"),
        ({"e2e": 100, "queue": 10, "other_prefill": 50}, "other_prefill"),
        ({"e2e": 100, "queue": 10, "preempted": 60, "other_prefill": 50}, "preempted"),
        ({"e2e": 100, "queue": 10}, ""),
    ],
)
def test_what_a_slow_request_waited_for(values: dict[str, int], name: str) -> None:
    assert waited_for(SlowRequest("x", 0, "stop", 0, values))[0] == name


@pytest.mark.parametrize("engines", [None, 3, [3], [{"engine": 3}], [{"engine": "vllm", "steps": {"decode": []}}]])
def test_a_damaged_account_is_none(engines: object) -> None:
    assert engines_of({"processes": [{"engines": engines}]}) == ()


def test_a_redacted_profile_keeps_the_figures_and_no_name_of_a_request() -> None:
    from leadline.report.redact import _figures

    facts = two_requests().facts()
    facts["slowest"][0]["id"] = "customer-7"
    made = _figures(facts)
    assert "customer-7" not in repr(made)
    assert engine_of(two_requests()).of("ttft").to_json() == made["requests"]["ttft"]


@pytest.mark.parametrize(
    ("sent", "trace"),
    [
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "0af7651916cd43dd8448eb211c80319c"),
        ("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-later", "0af7651916cd43dd8448eb211c80319c"),
        ("00-00000000000000000000000000000000-b7ad6b7169203331-01", ""),
        ("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", ""),
        ("a client's own", ""),
        (7, ""),
    ],
)
def test_a_request_has_the_trace_that_its_client_sent(sent: object, trace: str) -> None:
    assert trace_of({"traceparent": sent}) == trace
    account = Account("vllm", "1")
    account.began_ns = 0
    account.arrived(Request("cmpl-1-0-abcdef01", 0, 0, 8, trace=trace_of({"traceparent": sent})))
    account.end("cmpl-1-0-abcdef01", "stop", 1, 0, 5 * MS)
    engine = engine_of(account)
    made = serving_object(engine)
    assert made is not None
    assert [one["trace_id"] for one in made["slowest"]] == [trace]
    (shown,) = [row[0] for row in slow_rows(engine, 5)]
    assert shown == (trace or "…pl-1-0-abcdef01")


@pytest.mark.parametrize("headers", [None, {}, ["traceparent"], {"tracestate": "x"}])
def test_without_a_trace_there_is_none(headers: object) -> None:
    assert trace_of(headers) == ""


@pytest.mark.parametrize("stored", ["<b>", "0" * 31, "g" * 32, 7, None])
def test_a_trace_that_is_none_is_not_shown(stored: object) -> None:
    record = two_requests().facts()
    record["slowest"][0]["trace"] = stored
    (engine,) = engines_of({"processes": [{"pid": 7, "engines": [record]}]})
    assert [one.trace for one in engine.slowest] == ["", ""]
