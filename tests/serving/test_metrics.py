"""Prometheus and the live screen say what the account says."""

from __future__ import annotations

from tests.serving.test_account import two_requests

from leadline.capture.engine_metrics import engine_metrics
from leadline.engines import engines_of
from leadline.engines.words import now_line, sentence, title


def values() -> dict[str, list[tuple[dict[str, str], float]]]:
    return {name: listed for name, _, _, listed in engine_metrics([two_requests().facts()])}


def test_metrics_of_an_engine() -> None:
    made = values()
    assert {labels["reason"]: value for labels, value in made["leadline_engine_requests_total"]} == {
        "stop": 1.0,
        "length": 1.0,
    }
    assert [value for _, value in made["leadline_engine_cache_used_ratio"]] == [0.25]
    assert engine_metrics([]) == []


def test_a_live_line_and_the_first_line() -> None:
    (engine,) = engines_of({"processes": [{"pid": 1, "engines": [two_requests().facts()]}]})
    assert "in the queue" in now_line(engine)
    assert "cache 25 %" in now_line(engine)
    said = sentence(engine)
    assert said.startswith("serves 2 requests")
    assert said.endswith("engine steps: prefill 25 %, decode 25 %, mixed 50 %")
    assert title(engine) == "3 engine steps, 26.7 ms each"
